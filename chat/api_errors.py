"""Every failure of the public API in the shape that OpenAI's clients expect."""

import logging
from dataclasses import dataclass, field

from django.core.exceptions import RequestDataTooBig
from django.http import Http404
from rest_framework import exceptions

from chat.api_limits import standing_headers
from chat.proof_of_work import ProofMissing
from chat.turns import QuestionTooLong, QuotaReached
from models_app.embedder import EmbeddingError
from models_app.llm import LLMError, ProviderError, Reason
from tenants.limits import MONTH, LimitReached, LimitsUnavailable
from tenants.store import StoreNotReady

logger = logging.getLogger(__name__)

INVALID = "invalid_request_error"
SERVER = "server_error"
QUOTA = "insufficient_quota"
# Clients retry statuses from 500 and 429 by themselves; here that would only cost another answer, or help nothing.
NO_RETRY = {"x-should-retry": "false"}


class ModelNotFound(Exception):
    """The model does not exist, or the key may not use it: to a caller that is one and the same."""

    def __init__(self, slug: str):
        super().__init__(f"The model `{slug}` does not exist or you do not have access to it.")


class UnknownAddress(Exception):
    """Nothing of the API is at this address."""

    def __init__(self, method: str, path: str):
        super().__init__(f"Unknown request URL: {method} {path}. Check the address for typos.")


@dataclass(frozen=True)
class ApiError:
    """One error as it is sent."""

    status: int
    message: str
    type: str = INVALID
    code: str | None = None
    param: str | None = None
    headers: dict = field(default_factory=dict)

    @property
    def body(self) -> dict:
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


# What each failure means to a caller; the first line that fits counts. Without a message here, the error is its own.
MEANINGS = (
    (
        (exceptions.AuthenticationFailed, exceptions.NotAuthenticated),
        {"status": 401, "code": "invalid_api_key", "headers": {"WWW-Authenticate": "Bearer"}},
    ),
    (exceptions.PermissionDenied, {"status": 403, "code": "permission_denied"}),
    (ProofMissing, {"status": 403, "code": "proof_of_work_required"}),
    (exceptions.MethodNotAllowed, {"status": 405, "code": "method_not_allowed"}),
    (exceptions.ParseError, {"status": 400}),
    ((Http404, UnknownAddress, exceptions.NotFound), {"status": 404, "code": "unknown_url"}),
    (RequestDataTooBig, {"status": 413, "code": "request_too_large", "message": "The request is too large."}),
    (ModelNotFound, {"status": 404, "code": "model_not_found", "param": "model"}),
    (QuestionTooLong, {"status": 400, "code": "context_length_exceeded", "param": "messages"}),
    (QuotaReached, {"status": 429, "type": QUOTA, "code": QUOTA, "headers": NO_RETRY}),
    (
        LimitsUnavailable,
        {"status": 503, "type": SERVER, "code": "limits_unavailable", "headers": {"Retry-After": "1"}},
    ),
    (LLMError, {"status": 502, "type": SERVER, "code": "llm_unavailable", "headers": NO_RETRY}),
    (EmbeddingError, {"status": 502, "type": SERVER, "code": "embedding_unavailable", "headers": NO_RETRY}),
    (
        StoreNotReady,
        {
            "status": 503,
            "message": "This workspace cannot be opened for now: its operator has to see to it.",
            "type": SERVER,
            "code": "workspace_unavailable",
            "headers": NO_RETRY,
        },
    ),
)


def api_error_of(error: Exception) -> ApiError:
    """Return what a caller is told of an error; one that was not foreseen is logged and says nothing of itself."""
    if isinstance(error, exceptions.ValidationError):
        param, complaint = first_complaint(error.detail)
        return ApiError(400, f"Invalid '{param}': {complaint}" if param else complaint, param=param or None)
    if isinstance(error, LimitReached):
        return _limit_error(error)
    meaning = next((meaning for kinds, meaning in MEANINGS if isinstance(error, kinds)), None)
    if meaning is None:
        logger.error("The public API failed", exc_info=error)
        return ApiError(500, "The server had an error while it answered.", SERVER, "internal_error")
    if isinstance(error, StoreNotReady):
        logger.error("%s", error)
    if isinstance(error, ProviderError) and error.reason == Reason.TIMEOUT:
        meaning = meaning | {"status": 504, "code": "timeout"}
    return ApiError(**({"message": str(error)} | meaning))


def _limit_error(error: LimitReached) -> ApiError:
    """A minute's limit is waited for, by clients of their own accord; a month's is not."""
    headers = standing_headers(error.standing)
    if error.limit.period == MONTH:
        return ApiError(429, str(error), QUOTA, QUOTA, headers=headers | NO_RETRY)
    return ApiError(429, str(error), "requests", "rate_limit_exceeded", headers=headers)


def first_complaint(detail: object, path: str = "") -> tuple[str, str]:
    """Return where the first complaint of a validation stands ("messages.0.content"), and what it says."""
    if isinstance(detail, dict):
        name, rest = next(iter(detail.items()))
        is_general = name == "non_field_errors"
        return first_complaint(rest, path if is_general else f"{path}.{name}".strip("."))
    if isinstance(detail, list):
        position, rest = next((position, part) for position, part in enumerate(detail) if part)
        return first_complaint(rest, f"{path}.{position}" if isinstance(rest, dict) else path)
    return path, str(detail)
