"""What Dify's clients read beside the text: usage with prices, the passages of an answer, and errors by its codes."""

from dataclasses import dataclass
from decimal import Decimal
from uuid import NAMESPACE_URL, uuid5

from chat.answer import Answered
from chat.api_errors import ApiError
from models_app.models import MLModel
from models_app.retrieval import RetrievedSnippet

PRICE_UNIT = Decimal("0.000001")  # our prices are of a million tokens
NO_PRICE = Decimal(0)
# What our codes are called there, and under which status; a code that is not here keeps its status.
CODES = {
    "invalid_api_key": (401, "unauthorized"),
    "permission_denied": (403, "forbidden"),
    "unknown_url": (404, "not_found"),
    "model_not_found": (404, "not_found"),
    "context_length_exceeded": (400, "invalid_param"),
    "rate_limit_exceeded": (429, "too_many_requests"),
    "insufficient_quota": (400, "provider_quota_exceeded"),
    "llm_unavailable": (400, "completion_request_error"),
    "embedding_unavailable": (400, "completion_request_error"),
    "timeout": (400, "completion_request_error"),
    "workspace_unavailable": (400, "app_unavailable"),
    "internal_error": (500, "internal_server_error"),
}


@dataclass(frozen=True)
class DifyError(ApiError):
    """An error as Dify sends it."""

    @property
    def body(self) -> dict:
        return {"code": self.code, "message": self.message, "status": self.status}


def dify_error(error: ApiError) -> DifyError:
    """Return the error in Dify's words."""
    status, code = CODES.get(error.code, (error.status, error.code or "invalid_param"))
    return DifyError(status, error.message, code=code, headers=error.headers)


def metadata_of(model: MLModel, answered: Answered, seconds: float) -> dict:
    """Return what an answer cost and what it stands on. Prices are texts, tokens and latency (seconds) are numbers."""
    return {"usage": _usage(model, answered, seconds), "retriever_resources": _resources(model, answered)}


def _usage(model: MLModel, answered: Answered, seconds: float) -> dict:
    prompt_price, completion_price = model.input_price or NO_PRICE, model.output_price or NO_PRICE
    prompt, completion = answered.prompt_tokens, answered.completion_tokens
    return {
        "prompt_tokens": prompt,
        "prompt_unit_price": _text(prompt_price),
        "prompt_price_unit": _text(PRICE_UNIT),
        "prompt_price": _text(prompt * prompt_price * PRICE_UNIT),
        "completion_tokens": completion,
        "completion_unit_price": _text(completion_price),
        "completion_price_unit": _text(PRICE_UNIT),
        "completion_price": _text(completion * completion_price * PRICE_UNIT),
        "total_tokens": prompt + completion,
        "total_price": _text((prompt * prompt_price + completion * completion_price) * PRICE_UNIT),
        "currency": "USD",
        "latency": round(seconds, 3),
    }


def _resources(model: MLModel, answered: Answered) -> list[dict]:
    best = max((packed.hit.bm25 or 0 for packed in answered.passages), default=0)
    return [
        {
            "position": position,
            "dataset_id": _id("model", model.pk),
            "dataset_name": model.name,
            "document_id": _id("document", model.pk, packed.hit.uri or packed.hit.id),
            "document_name": packed.hit.title,
            "segment_id": _id("snippet", model.pk, packed.hit.id),
            "score": _score(packed.hit, best),
            "content": packed.hit.text,
            "url": packed.hit.address,
        }
        for position, packed in enumerate(answered.passages, start=1)
    ]


def _score(hit: RetrievedSnippet, best_bm25: float) -> float:
    """Return how well a passage fits, 0 to 1: its relevance, or else its words' share of the best passage's."""
    if hit.distance is not None:
        return round(min(1.0, max(0.0, 1 - hit.distance)), 6)
    return round((hit.bm25 or 0) / best_bm25, 6) if best_bm25 > 0 else 0.0


def _id(*parts: object) -> str:
    """Return an id of the form that Dify's have; the same thing has the same one always."""
    return str(uuid5(NAMESPACE_URL, "/".join(map(str, parts))))


def _text(price: Decimal) -> str:
    return f"{price.normalize():f}"
