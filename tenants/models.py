"""Who is asking, and how often: tenants, members, invitations, API keys, request counts. It is the control database."""

import unicodedata
from datetime import timedelta

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.urls import get_resolver
from django.utils import timezone
from django.utils.crypto import get_random_string

from tenants import secrets

INVITATION_DAYS = 14
# Names that are no address of ours but would be taken for one.
MISLEADING_SLUGS = frozenset({"static", "widget", "api", "www", "admin", "health", "login", "new"})


def refuse_reserved_slug(slug: str) -> None:
    """Raise ValidationError when the slug is the first part of one of the installation's own addresses."""
    own = {str(route.pattern).split("/")[0] for route in get_resolver().url_patterns}
    if slug in own or slug in MISLEADING_SLUGS:
        raise ValidationError(f"“{slug}” is reserved: choose another name.", code="reserved")


def refuse_unprintable(name: str) -> None:
    """Raise ValidationError when a name holds line breaks or invisible characters: it stands in e-mails' subjects."""
    if any(unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp") for letter in name):
        raise ValidationError("Use letters, digits, signs and blanks only, in one line.", code="unprintable")


def default_snippet_quota() -> int:
    return settings.SITEWISE_SNIPPET_QUOTA


def default_question_quota() -> int:
    return settings.SITEWISE_QUESTION_QUOTA


class Tenant(models.Model):
    """One customer. The row says who; everything the customer owns lies in the tenant's own store."""

    slug = models.CharField(
        max_length=40,
        unique=True,
        error_messages={"unique": "This address is taken: choose another one."},
        validators=[
            RegexValidator(r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?\Z", "Use lower-case letters, digits and hyphens."),
            refuse_reserved_slug,
        ],
    )
    name = models.CharField(max_length=100, validators=[refuse_unprintable])
    is_suspended = models.BooleanField(default=False, help_text="Nobody but the operator gets in, and no key works.")
    snippet_quota = models.PositiveIntegerField(default=default_snippet_quota, help_text="Most snippets, all models.")
    question_quota = models.PositiveIntegerField(
        default=default_question_quota, help_text="Most questions a calendar month, all models."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["slug"]

    def __str__(self):
        return self.name


class Role(models.TextChoices):
    """What a member may do; each role includes the ones above it in this list."""

    READER = "reader", "Reader: sees everything, changes nothing"
    EDITOR = "editor", "Editor: works on models, training data and history"
    OWNER = "owner", "Owner: also members, API keys and provider keys"

    @property
    def may_edit(self) -> bool:
        return self != Role.READER

    @property
    def may_own(self) -> bool:
        return self == Role.OWNER


class Membership(models.Model):
    """A person's place in a tenant."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.READER)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["user__email"]
        constraints = [models.UniqueConstraint(fields=["tenant", "user"], name="one_membership_a_person")]

    def __str__(self):
        return f"{self.user} in {self.tenant}"


def invitation_token() -> str:
    return get_random_string(40)


def invitation_expiry():
    return timezone.now() + timedelta(days=INVITATION_DAYS)


class Invitation(models.Model):
    """An e-mail that lets its reader join, with or without an account of theirs. The link is the proof."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField()
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.EDITOR)
    token = models.CharField(max_length=40, unique=True, default=invitation_token)
    expires_at = models.DateTimeField(default=invitation_expiry)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["email"]
        constraints = [models.UniqueConstraint(fields=["tenant", "email"], name="one_invitation_an_address")]

    def __str__(self):
        return f"{self.email} to {self.tenant}"

    @property
    def is_open(self) -> bool:
        return self.expires_at > timezone.now() and not self.tenant.is_suspended


class ApiKey(models.Model):
    """A key of the public API. A secret key's text is shown once and never stored; a public one stands in pages."""

    class Kind(models.TextChoices):
        SECRET = "secret", "Secret: for your servers"
        PUBLIC = "public", "Public: for the widget on your pages"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=80)
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.SECRET)
    prefix = models.CharField(max_length=20, unique=True)
    salt = models.CharField(max_length=32)
    digest = models.CharField(max_length=64)
    public_text = models.CharField(max_length=100, blank=True, help_text="Of a public key, which is no secret: itself.")
    model_slugs = models.JSONField(default=list, help_text="The models this key may use.")
    allowed_origins = models.JSONField(default=list, help_text="Public keys: the origins that may use it.")
    requests_a_minute = models.PositiveIntegerField(null=True, blank=True, validators=[MinValueValidator(1)])
    visitor_requests_a_minute = models.PositiveIntegerField(null=True, blank=True, validators=[MinValueValidator(1)])
    questions_a_month = models.PositiveIntegerField(null=True, blank=True, validators=[MinValueValidator(1)])
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self):
        return f"{self.name} ({self.prefix}…)"

    @classmethod
    def mint(cls, **fields) -> tuple["ApiKey", str]:
        """Return a saved key and its text, which is kept of a public key only."""
        minted = secrets.mint_api_key(fields["kind"])
        shown = minted.text if fields["kind"] == cls.Kind.PUBLIC else ""
        key = cls.objects.create(
            prefix=minted.prefix, salt=minted.salt, digest=minted.digest, public_text=shown, **fields
        )
        return key, minted.text

    @classmethod
    def find(cls, text: str) -> "ApiKey | None":
        """Return the live key of this text, or None."""
        key = cls.objects.select_related("tenant").filter(prefix=secrets.prefix_of(text)).first()
        if key is None or key.revoked_at or not secrets.is_same_key(text, key.salt, key.digest):
            return None
        return key


class RequestCount(models.Model):
    """How many requests were let in since a minute or a calendar month began."""

    class Period(models.TextChoices):
        MINUTE = "minute"
        MONTH = "month"

    subject = models.CharField(max_length=120, help_text="Whose requests: a key's, a visitor's, a model's.")
    period = models.CharField(max_length=6, choices=Period.choices)
    starts_at = models.DateTimeField()
    count = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-starts_at", "subject"]
        constraints = [
            models.UniqueConstraint(fields=["period", "starts_at", "subject"], name="one_count_a_subject_and_period")
        ]

    def __str__(self):
        return f"{self.count} of {self.subject} since {self.starts_at:%Y-%m-%d %H:%M}"


def new_salt() -> str:
    return get_random_string(40)


class DailySalt(models.Model):
    """What visitors' addresses are hashed with for one day. It is thrown away then: no hash can be traced back."""

    day = models.DateField(unique=True)
    salt = models.CharField(max_length=40, default=new_salt)

    class Meta:
        ordering = ["-day"]

    def __str__(self):
        return f"{self.day}"
