"""The only settings file. Every value comes from the environment; the defaults run on a laptop.

A setting that is missing or malformed is named in the error, with what it should hold.
"""

import os
import secrets
from errno import EACCES
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlsplit

import dj_email_url
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from environs import Env, EnvError, validate
from marshmallow import ValidationError

BASE_DIR = Path(__file__).resolve().parent.parent
SITEWISE_VERSION = "0.1.0"

# One arithmetic thread a process: on a small busy machine, spinning BLAS threads cost 5 to 20 times.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

env = Env()
env.read_env(BASE_DIR / ".env", recurse=False)


def _read(reader, name, default, expected, **options):
    """Return one value of the environment, or raise an error that names it and what it should hold."""
    try:
        return reader(name, default, **options)
    except (EnvError, ValueError) as error:
        reasons = getattr(error, "error_messages", None) or [error]
        reason = "; ".join(str(each) for each in reasons).rstrip(".")
        raise ImproperlyConfigured(
            f"The environment variable {name} cannot be used: {reason}. Set {name} to {expected}, or unset it."
        ) from error


def _web_address(value):
    parts = urlsplit(value)
    if value and (parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0):
        raise ValidationError("not a web address such as https://example.com")


def _own_address(value):
    _web_address(value)
    parts = urlsplit(value)
    if parts.path.strip("/") or parts.query or "@" in parts.netloc:
        raise ValidationError("more than scheme, host and port: Sitewise needs a host of its own")


def _header_text(value):
    if not value.isascii() or not value.isprintable():
        raise ValidationError("holds characters that cannot be sent in a header")


def _contact(value):
    _header_text(value)
    if "@" in value and "//" not in value:
        validate.Email(error="not an e-mail address such as webmaster@example.com")(value)
    else:
        _web_address(value)


def _broker_address(value):
    if value and urlsplit(value).scheme not in ("redis", "rediss", "amqp", "amqps"):
        raise ValidationError("neither a Redis nor a RabbitMQ address")


def _email_address(value):
    if urlsplit(value).scheme not in dj_email_url.SCHEMES:
        raise ValidationError("not a way to send e-mail")
    dj_email_url.parse(value)


def _long_secret(value):
    if value and len(value) < 32:
        raise ValidationError("shorter than 32 characters")


def _text(name, default="", expected="a text", check=None):
    return _read(env.str, name, default, expected, validate=check)


def _address(name, default="", check=_web_address):
    return _text(name, default, "a web address such as https://example.com", check).rstrip("/")


def _number(name, default, reader=env.int, minimum=1):
    return _read(reader, name, default, f"a number of at least {minimum}", validate=validate.Range(min=minimum))


def _switch(name, default):
    return _read(env.bool, name, default, "1 or 0")


def _networks(name, default):
    expected = "addresses or networks by commas, such as 127.0.0.1, 10.0.0.0/8"
    entries = _read(env.list, name, default, expected)
    return _read(lambda *_: tuple(ip_network(entry.strip()) for entry in entries if entry.strip()), name, (), expected)


def _writable_folder(name, default):
    folder = _read(env.path, name, default, "a folder that may be written").resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(EACCES, os.strerror(EACCES))
    except OSError as error:
        raise ImproperlyConfigured(
            f"The folder {folder} cannot be made ({error.strerror}). Set {name} to a folder that may be written."
        ) from error
    return folder


def _made_once(path):
    """Return the secret kept in a file of the data folder, making it at the first start."""
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(48))
    except FileExistsError:
        pass
    return path.read_text().strip()


# --- Where everything lies -----------------------------------------------------------------------
SITEWISE_DATA_DIR = _writable_folder("SITEWISE_DATA_DIR", BASE_DIR / "var")
SITEWISE_MODELS_DIR = _writable_folder("SITEWISE_MODELS_DIR", BASE_DIR / "models")
STORES_DIR = SITEWISE_DATA_DIR / "stores"
BACKUPS_DIR = SITEWISE_DATA_DIR / "backups"
BROKER_DIR = SITEWISE_DATA_DIR / "broker"

# --- Secrets -------------------------------------------------------------------------------------
SECRET_KEY = _text("SITEWISE_SECRET_KEY", "", "at least 32 random characters", _long_secret) or _made_once(
    SITEWISE_DATA_DIR / "secret_key"
)

# --- Where people reach it -----------------------------------------------------------------------
SITEWISE_URL = _address("SITEWISE_URL", "http://127.0.0.1:8000", _own_address)
_site = urlsplit(SITEWISE_URL)
IS_HTTPS = _site.scheme == "https"
DEBUG = _switch("SITEWISE_DEBUG", False)
ALLOWED_HOSTS = [_site.hostname, "127.0.0.1", "localhost", "[::1]"]
CSRF_TRUSTED_ORIGINS = [f"{_site.scheme}://{_site.netloc}"]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_HTTPS
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SECURE_HSTS_SECONDS = 31_536_000 if IS_HTTPS else 0
SILENCED_SYSTEM_CHECKS = [
    "security.W005",  # HSTS for all subdomains: what runs on those is not ours to decide about
    "security.W008",  # the redirect to HTTPS: the TLS proxy's, and it may ask over HTTP whether the application is up
    "security.W021",  # HSTS in browsers' built-in lists: the same, and it cannot be taken back for months
]
# Whose X-Forwarded-For is believed: nobody's, as whoever reaches the application itself may write it; limits would then
# be counted against addresses that were made up. An https address says that a proxy stands before us, on this machine
# unless it is named here: the loopback network is reached from this machine alone.
SITEWISE_TRUSTED_PROXIES = _networks("SITEWISE_TRUSTED_PROXIES", ["127.0.0.0/8", "::1"] if IS_HTTPS else [])
# Proxy headers are believed only where the installation says that it stands behind a TLS proxy.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if IS_HTTPS else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

# --- What outside parts it uses (each is one setting; empty means the embedded default) -----------
CELERY_BROKER_URL = _text(
    "CELERY_BROKER_URL", "", "redis://host:6379/0 or amqp://user:password@host//", _broker_address
)
SITEWISE_LLM_URL = _address("SITEWISE_LLM_URL")
SITEWISE_LLM_KEY = _text("SITEWISE_LLM_KEY")
SITEWISE_LLM_MODEL = _text("SITEWISE_LLM_MODEL")
SITEWISE_SPLITTER_MODEL = _text("SITEWISE_SPLITTER_MODEL")
SITEWISE_LLM_TIMEOUT_SECONDS = _number("SITEWISE_LLM_TIMEOUT_SECONDS", 60)
SITEWISE_EMBEDDING_URL = _address("SITEWISE_EMBEDDING_URL")
SITEWISE_EMBEDDING_KEY = _text("SITEWISE_EMBEDDING_KEY")
SITEWISE_EMBEDDING_MODEL = _text("SITEWISE_EMBEDDING_MODEL")
if SITEWISE_EMBEDDING_URL and not SITEWISE_EMBEDDING_MODEL:
    raise ImproperlyConfigured(
        "SITEWISE_EMBEDDING_URL names a service but no model of it. Set SITEWISE_EMBEDDING_MODEL to the embedding "
        "model's name there, such as text-embedding-3-small, or unset SITEWISE_EMBEDDING_URL."
    )
SITEWISE_PROVIDER_HOSTS = frozenset(
    host.strip().lower()
    for host in _read(env.list, "SITEWISE_PROVIDER_HOSTS", [], "host names separated by commas")
    if host.strip()
)

# --- Crawling ------------------------------------------------------------------------------------
SITEWISE_ALLOW_LOOPBACK = _switch("SITEWISE_ALLOW_LOOPBACK", False)
# Whom a site's owner may turn to: an e-mail address is sent as From, a web address in the User-Agent's comment.
_crawl_contact = _text("SITEWISE_CRAWL_CONTACT", "", "an e-mail address or a web address", _contact)
_crawl_web_contact = "" if "@" in _crawl_contact and "//" not in _crawl_contact else _crawl_contact
SITEWISE_CRAWL_EMAIL = "" if _crawl_web_contact else _crawl_contact
SITEWISE_CRAWL_USER_AGENT = _text(
    "SITEWISE_CRAWL_USER_AGENT",
    f"Sitewise/{SITEWISE_VERSION} (+{_crawl_web_contact or SITEWISE_URL})",
    "a name such as AcmeBot/1.0",
    _header_text,
)
if _crawl_web_contact not in SITEWISE_CRAWL_USER_AGENT:
    SITEWISE_CRAWL_USER_AGENT += f" (+{_crawl_web_contact})"
SITEWISE_CRAWL_DELAY_SECONDS = _number("SITEWISE_CRAWL_DELAY_SECONDS", 0.5, env.float, minimum=0)
SITEWISE_CRAWL_MAX_PAGES = _number("SITEWISE_CRAWL_MAX_PAGES", 5_000)
SITEWISE_MAX_PAGE_BYTES = _number("SITEWISE_MAX_PAGE_BYTES", 5_000_000)
SITEWISE_MAX_DOCUMENT_BYTES = _number("SITEWISE_MAX_DOCUMENT_BYTES", 25_000_000)
SITEWISE_MAX_UPLOAD_BYTES = _number("SITEWISE_MAX_UPLOAD_BYTES", 20 * 1024 * 1024)
SITEWISE_FETCH_TIMEOUT_SECONDS = _number("SITEWISE_FETCH_TIMEOUT_SECONDS", 20.0, env.float)
SITEWISE_CHROMIUM = _text("SITEWISE_CHROMIUM")  # draws pages that are empty without scripts; empty: looked for
SITEWISE_LEASE_SECONDS = _number("SITEWISE_LEASE_SECONDS", 30.0, env.float)

# --- What a new tenant may use -------------------------------------------------------------------
SITEWISE_SIGNUP_OPEN = _switch("SITEWISE_SIGNUP_OPEN", True)
SITEWISE_SNIPPET_QUOTA = _number("SITEWISE_SNIPPET_QUOTA", 50_000)
SITEWISE_QUESTION_QUOTA = _number("SITEWISE_QUESTION_QUOTA", 100_000)

# --- E-mail --------------------------------------------------------------------------------------
_email = dj_email_url.parse(
    _text(
        "SITEWISE_EMAIL_URL",
        "console://",
        "submission://user:password@host:587 (TLS), smtp://host:25 or console://",
        _email_address,
    )
)
vars().update({key: value for key, value in _email.items() if key.startswith("EMAIL_")})
EMAIL_TIMEOUT = _email.get("EMAIL_TIMEOUT") or 20  # seconds: a mail server that hangs must not hold a page for ever
DEFAULT_FROM_EMAIL = SERVER_EMAIL = _text("SITEWISE_EMAIL_FROM", f"Sitewise <noreply@{_site.hostname}>")

# --- Django --------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "config",
    "tenants",
    "models_app",
    "crawler",
    "chat",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "rest_framework",
    "drf_spectacular_sidecar",
    "django_htmx",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "tenants.middleware.TenantMiddleware",
]
REST_FRAMEWORK = {"DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema"}
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# IMMEDIATE transactions wait for the write lock instead of failing on it (measured: 0 lock errors with 4 writers
# and 4 readers, against hundreds with the defaults); NORMAL is safe with WAL.
SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": (
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA mmap_size=2147418112;"
        "PRAGMA cache_size=-8192; PRAGMA temp_store=MEMORY; PRAGMA journal_size_limit=67108864"
    ),
}
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": SITEWISE_DATA_DIR / "control.sqlite3",
        "OPTIONS": SQLITE_OPTIONS,
        "TEST": {"NAME": SITEWISE_DATA_DIR / "test_control.sqlite3"},
    }
}
DATABASE_ROUTERS = ["tenants.router.TenantRouter"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# Static files are served from the packages themselves: nothing has to be collected before the first start.
WHITENOISE_USE_FINDERS = True

# --- Accounts ------------------------------------------------------------------------------------
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "home"
ACCOUNT_LOGOUT_REDIRECT_URL = "home"
ACCOUNT_ADAPTER = "tenants.accounts.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_FORMS = {
    "login": "tenants.account_forms.LoginForm",
    "signup": "tenants.account_forms.SignupForm",
    "add_email": "tenants.account_forms.AddEmailForm",
    "change_password": "tenants.account_forms.ChangePasswordForm",
    "set_password": "tenants.account_forms.SetPasswordForm",
    "reset_password": "tenants.account_forms.ResetPasswordForm",
    "reset_password_from_key": "tenants.account_forms.ResetPasswordKeyForm",
    "reauthenticate": "tenants.account_forms.ReauthenticateForm",
}
ACCOUNT_UNIQUE_EMAIL = True
ACCOUNT_EMAIL_VERIFICATION = "optional"
ACCOUNT_EMAIL_SUBJECT_PREFIX = "Sitewise: "
ACCOUNT_DEFAULT_HTTP_PROTOCOL = _site.scheme
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_USER_DISPLAY = "tenants.accounts.display_name"
# Beside allauth's own limits (30 logins a minute and address, 5 wrong passwords in five minutes and account).
ACCOUNT_RATE_LIMITS = {"invite": "30/h/user", "create_tenant": "10/h/user"}

# --- Celery --------------------------------------------------------------------------------------
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
# The job's row is the truth: a message that comes late or twice finds the job taken and does nothing.
CELERY_TASK_ACKS_LATE = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1

# --- Log -----------------------------------------------------------------------------------------
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
LOG_LEVEL = _text("SITEWISE_LOG_LEVEL", "WARNING", "DEBUG, INFO, WARNING or ERROR", validate.OneOf(LOG_LEVELS))
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    # It logs whole addresses, and a provider's may carry its key.
    "loggers": {"httpx2": {"level": "WARNING"}},
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
}
if LOG_LEVEL in ("WARNING", "ERROR"):
    # Django logs every request that is refused, and each 502, which tells the caller of a provider's failure and stands
    # in History with its reason. Scanners that guess addresses and hosts are seen from INFO on, our own errors always.
    _ours = {
        "()": "django.utils.log.CallbackFilter",
        "callback": lambda record: getattr(record, "status_code", None) != 502,
    }
    LOGGING["filters"] = {"ours": _ours}
    LOGGING["loggers"] |= {
        "django.request": {"level": "ERROR", "filters": ["ours"]},
        "django.security.DisallowedHost": {"level": "CRITICAL"},
    }
