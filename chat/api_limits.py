"""What a key, a visitor and a model may ask: their limits, held before a question is answered, and told in headers."""

from math import ceil

from django.http import HttpRequest
from django.utils import timezone

from models_app.models import MLModel
from tenants.authentication import Caller
from tenants.limits import MONTH, Limit, Standing, admit
from tenants.models import ApiKey
from tenants.visitors import client_address, visitor_hash

LIMIT_HEADERS = (
    "Retry-After",
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
)


def visitor_of(request: HttpRequest, caller: Caller, user: str = "", session_key: str = "") -> str:
    """Return the hash of the visitor who asks, or "" where a server asks and does not say for whom.

    A browser's visitor is its address. A server's own address stands for all of its visitors: there counts what the
    server calls them, a user or else a session.
    """
    today, tenant_id = timezone.now().date(), caller.tenant.pk
    if caller.key.kind == ApiKey.Kind.PUBLIC:
        return visitor_hash(tenant_id, "address", client_address(request), today)
    if user or session_key:
        return visitor_hash(tenant_id, "user" if user else "session", user or session_key, today)
    return ""


def admit_question(caller: Caller, model: MLModel, visitor: str) -> dict[str, str]:
    """Count a question under all limits that hold for it, and return the headers that tell how far they are used.

    Raises LimitReached, LimitsUnavailable.
    """
    key = caller.key
    limits = [
        Limit(f"key:{key.pk}", "This API key", key.requests_a_minute),
        Limit(f"key:{key.pk}", "This API key", key.questions_a_month, MONTH),
        Limit(f"model:{caller.tenant.pk}:{model.pk}", "This chatbot", model.requests_a_minute),
    ]
    if visitor:
        limits.append(Limit(f"visitor:{key.pk}:{visitor}", "One visitor", key.visitor_requests_a_minute))
    standing = admit([limit for limit in limits if limit.most is not None], timezone.now())
    return {} if standing is None else standing_headers(standing)


def standing_headers(standing: Standing) -> dict[str, str]:
    """Return the headers that OpenAI tells a limit in, `Retry-After` among them once nothing remains."""
    headers = {
        "x-ratelimit-limit-requests": str(standing.most),
        "x-ratelimit-remaining-requests": str(max(0, standing.remaining)),
        "x-ratelimit-reset-requests": f"{ceil(standing.reset_seconds)}s",
    }
    return headers | ({"Retry-After": str(ceil(standing.retry_seconds))} if standing.retry_seconds else {})
