"""Settings: read from the environment in a process of their own; what is malformed is named with what to set."""

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import PROJECT

SHOWN = [
    *(
        "ALLOWED_HOSTS",
        "CSRF_TRUSTED_ORIGINS",
        "SESSION_COOKIE_SECURE",
        "CSRF_COOKIE_SECURE",
        "SESSION_COOKIE_HTTPONLY",
    ),
    *("SESSION_COOKIE_SAMESITE", "SECURE_PROXY_SSL_HEADER", "SECURE_HSTS_SECONDS", "SITEWISE_TRUSTED_PROXIES"),
    *("EMAIL_BACKEND", "EMAIL_HOST", "EMAIL_PORT", "EMAIL_USE_TLS", "EMAIL_TIMEOUT", "DEFAULT_FROM_EMAIL"),
    *("SECRET_KEY", "SITEWISE_URL", "SITEWISE_PROVIDER_HOSTS", "SITEWISE_ALLOW_LOOPBACK", "CELERY_BROKER_URL", "DEBUG"),
    *("SITEWISE_CRAWL_USER_AGENT", "SITEWISE_CRAWL_EMAIL"),
]
SHOW = (
    "import json; from django.conf import settings; "
    "shown = lambda value: sorted(value) if isinstance(value, frozenset) else str(value); "
    f"print(json.dumps({{name: getattr(settings, name) for name in {SHOWN}}}, default=shown))"
)


# Answers as Django logs them: not found, a foreign host, a provider that failed, a broken store, an error of ours.
ANSWER = """
import django
django.setup()
from django.core.handlers.exception import response_for_exception
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.utils.log import log_response
print(Client().get("/v1/nowhere", headers={"host": "127.0.0.1"}).status_code)
print(Client().get("/v1/nowhere", headers={"host": "evil.test"}).status_code)
request = RequestFactory().get("/v1/away", headers={"host": "127.0.0.1"})
for status, reason in ((502, "Bad Gateway"), (503, "Service Unavailable")):
    log_response("%s: %s", reason, request.path, response=HttpResponse(status=status), request=request)
try:
    raise RuntimeError("out of luck")
except RuntimeError as error:
    print(response_for_exception(request, error).status_code)
"""


def read(folder, script=SHOW, **variables):
    """Return the ended process that runs the script, which prints the settings, with these variables."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SITEWISE_", "CELERY_"))}
    places = {"SITEWISE_DATA_DIR": str(folder), "DJANGO_SETTINGS_MODULE": "config.settings"}
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=PROJECT,
        env=environment | places | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def settings_with(folder, **variables) -> dict:
    done = read(folder, **variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_defaults_run_on_a_laptop(tmp_path):
    settings = settings_with(tmp_path)
    assert settings["ALLOWED_HOSTS"] == ["127.0.0.1", "127.0.0.1", "localhost", "[::1]"]
    assert settings["SESSION_COOKIE_SECURE"] is settings["DEBUG"] is settings["SITEWISE_ALLOW_LOOPBACK"] is False
    assert settings["SESSION_COOKIE_HTTPONLY"] is True
    assert settings["SECURE_PROXY_SSL_HEADER"] is None
    assert (settings["SECURE_HSTS_SECONDS"], settings["SITEWISE_TRUSTED_PROXIES"]) == (0, [])
    assert settings["EMAIL_BACKEND"].endswith("console.EmailBackend")
    assert settings["CELERY_BROKER_URL"] == ""


def test_an_https_address_sets_hosts_csrf_cookies_and_proxy_headers(tmp_path):
    settings = settings_with(tmp_path, SITEWISE_URL="https://chat.example.com/")
    assert settings["SITEWISE_URL"] == "https://chat.example.com"
    assert settings["ALLOWED_HOSTS"][0] == "chat.example.com"
    assert settings["CSRF_TRUSTED_ORIGINS"] == ["https://chat.example.com"]
    assert settings["SESSION_COOKIE_SECURE"] is settings["CSRF_COOKIE_SECURE"] is True
    assert settings["SESSION_COOKIE_SAMESITE"] == "Lax"
    assert settings["SECURE_PROXY_SSL_HEADER"] == ["HTTP_X_FORWARDED_PROTO", "https"]
    assert settings["SECURE_HSTS_SECONDS"] > 0
    assert settings["SITEWISE_TRUSTED_PROXIES"] == ["127.0.0.0/8", "::1/128"]
    assert settings["DEFAULT_FROM_EMAIL"] == "Sitewise <noreply@chat.example.com>"


def test_trusted_proxies_are_addresses_and_networks(tmp_path):
    settings = settings_with(tmp_path, SITEWISE_TRUSTED_PROXIES=" 10.0.0.0/8, 192.0.2.7 ,fd00::/8,")
    assert settings["SITEWISE_TRUSTED_PROXIES"] == ["10.0.0.0/8", "192.0.2.7/32", "fd00::/8"]
    behind_tls = settings_with(tmp_path, SITEWISE_URL="https://chat.example.com", SITEWISE_TRUSTED_PROXIES="")
    assert behind_tls["SITEWISE_TRUSTED_PROXIES"] == []


def test_mail_goes_where_its_address_says(tmp_path):
    settings = settings_with(tmp_path, SITEWISE_EMAIL_URL="submission://ann:s%40fe@mail.test")
    assert settings["EMAIL_BACKEND"].endswith("smtp.EmailBackend")
    assert (settings["EMAIL_HOST"], settings["EMAIL_PORT"], settings["EMAIL_USE_TLS"]) == ("mail.test", 587, True)
    assert settings["EMAIL_TIMEOUT"] > 0


@pytest.mark.parametrize(
    ("variables", "user_agent", "email"),
    [
        ({}, "Sitewise/0.1.0 (+https://chat.example.com)", ""),
        ({"CONTACT": "ann@acme.test"}, "Sitewise/0.1.0 (+https://chat.example.com)", "ann@acme.test"),
        ({"CONTACT": "https://acme.test/bot"}, "Sitewise/0.1.0 (+https://acme.test/bot)", ""),
        ({"CONTACT": "https://acme.test/@bot", "USER_AGENT": "Bot/1"}, "Bot/1 (+https://acme.test/@bot)", ""),
        ({"USER_AGENT": "Bot/1 (ours)"}, "Bot/1 (ours)", ""),
    ],
)
def test_the_crawler_says_whom_to_turn_to(tmp_path, variables, user_agent, email):
    named = {f"SITEWISE_CRAWL_{name}": value for name, value in variables.items()}
    settings = settings_with(tmp_path, SITEWISE_URL="https://chat.example.com", **named)
    assert (settings["SITEWISE_CRAWL_USER_AGENT"], settings["SITEWISE_CRAWL_EMAIL"]) == (user_agent, email)


def test_the_secret_is_made_once_and_kept_from_others(tmp_path):
    first, second = settings_with(tmp_path), settings_with(tmp_path)
    assert first["SECRET_KEY"] == second["SECRET_KEY"] and len(first["SECRET_KEY"]) >= 50
    assert (tmp_path / "secret_key").stat().st_mode & 0o077 == 0
    assert settings_with(tmp_path, SITEWISE_SECRET_KEY="x" * 40)["SECRET_KEY"] == "x" * 40


def test_what_is_refused_is_no_news_to_the_log_and_an_error_keeps_its_traceback(tmp_path):
    done = read(tmp_path, ANSWER)
    assert done.stdout.split() == ["404", "400", "500"], done.stderr
    first, second, *_, last = done.stderr.strip().splitlines()
    assert "ERROR django.request: Service Unavailable: /v1/away" in first
    assert "ERROR django.request: Internal Server Error: /v1/away" in second
    assert last == "RuntimeError: out of luck"
    assert "evil.test" not in done.stderr and done.stderr.count("Traceback") == 1


def test_what_is_refused_is_logged_from_info_on(tmp_path):
    logged = read(tmp_path, ANSWER, SITEWISE_LOG_LEVEL="INFO").stderr
    assert all(said in logged for said in ("Not Found: /v1/nowhere", "evil.test", "Bad Gateway: /v1/away"))


def test_an_https_installation_passes_djangos_check_of_a_deployment(tmp_path):
    variables = {"SITEWISE_DATA_DIR": str(tmp_path), "SITEWISE_URL": "https://chat.example.com"}
    variables |= {"DJANGO_ALLOW_ASYNC_UNSAFE": ""}  # the browser tests set it
    done = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=PROJECT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_provider_hosts_are_a_list_of_names(tmp_path):
    settings = settings_with(tmp_path, SITEWISE_PROVIDER_HOSTS=" LLM.internal:8080, ollama ,")
    assert settings["SITEWISE_PROVIDER_HOSTS"] == ["llm.internal:8080", "ollama"]


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("SITEWISE_URL", "chat.example.com", "https://example.com"),
        ("SITEWISE_URL", "https://example.com/chat", "a host of its own"),
        ("SITEWISE_URL", "https://example.com:99999", "https://example.com"),
        ("SITEWISE_SECRET_KEY", "short", "at least 32 random characters"),
        ("SITEWISE_DEBUG", "perhaps", "1 or 0"),
        ("SITEWISE_ALLOW_LOOPBACK", "yess", "1 or 0"),
        ("SITEWISE_LEASE_SECONDS", "soon", "a number of at least 1"),
        ("SITEWISE_SNIPPET_QUOTA", "-3", "a number of at least 1"),
        ("SITEWISE_FETCH_TIMEOUT_SECONDS", "nan", "a number of at least 1"),
        ("SITEWISE_CRAWL_DELAY_SECONDS", "-1", "a number of at least 0"),
        ("SITEWISE_CRAWL_CONTACT", "ann@", "an e-mail address or a web address"),
        ("SITEWISE_CRAWL_CONTACT", "acme.test/bot", "an e-mail address or a web address"),
        ("SITEWISE_CRAWL_CONTACT", "https://acme.test/\nX-Other: 1", "an e-mail address or a web address"),
        ("SITEWISE_CRAWL_USER_AGENT", "Bot\n/1", "a name such as AcmeBot/1.0"),
        ("SITEWISE_EMAIL_URL", "mail.test:25", "submission://user:password@host:587"),
        ("SITEWISE_EMAIL_URL", "smtp://mail.test:port", "submission://user:password@host:587"),
        ("SITEWISE_TRUSTED_PROXIES", "10.0.0.0/8, proxy.test", "addresses or networks by commas"),
        ("SITEWISE_LLM_URL", "localhost:8080", "https://example.com"),
        ("SITEWISE_EMBEDDING_URL", "https://llm.test/v1", "Set SITEWISE_EMBEDDING_MODEL to"),
        ("SITEWISE_LOG_LEVEL", "LOUD", "DEBUG, INFO, WARNING or ERROR"),
        ("CELERY_BROKER_URL", "localhost:6379", "redis://host:6379/0"),
        ("SITEWISE_DATA_DIR", "/proc/nowhere", "a folder that may be written"),
    ],
)
def test_what_is_malformed_is_named_with_what_to_set(tmp_path, name, value, wanted):
    done = read(tmp_path, **{name: value})
    last_line = done.stderr.strip().splitlines()[-1]
    assert done.returncode != 0
    assert "ImproperlyConfigured" in last_line
    assert name in last_line and wanted in last_line


def test_manage_py_says_it_in_one_line(tmp_path):
    done = subprocess.run(
        [sys.executable, "manage.py", "migrate_tenants"],
        cwd=PROJECT,
        env=os.environ | {"SITEWISE_DATA_DIR": str(tmp_path), "SITEWISE_LEASE_SECONDS": "soon"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("The environment variable SITEWISE_LEASE_SECONDS cannot be used")
    assert len(done.stderr.strip().splitlines()) == 1
