"""The port to embeddings: the local model, or an OpenAI-compatible API. Every vector is a unit row of float32.

Also keeps what a cosine is worth in each embedding space, so that a threshold means the same in all of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from asgiref.sync import async_to_sync
from django.conf import settings

from models_app.llm import NotSpoken, ProviderError, Reason, ask_whole, connected, own_key, with_one_retry
from models_app.model_files import FETCH_COMMAND, ModelFilesMissing
from models_app.models import LOCAL_EMBEDDING, MLModel
from models_app.tokens import count_tokens, truncate_to_tokens
from tenants.addresses import AddressPolicy, operators_policy, provider_policy

if TYPE_CHECKING:
    from models_app.local_embedder import LocalEmbedder

# What the smaller servers take in one request by default (text-embeddings-inference); OpenAI takes far more.
MAX_BATCH_TEXTS = 32
MAX_BATCH_TOKENS = 16_000
MAX_TEXT_TOKENS = 8_000  # OpenAI's models refuse a text over 8,191
# Models that are known to read less (their model cards: 512, all-minilm 256), by a part of the name. A fifth is left
# for their vocabularies, which cut a text into more tokens than the ones counted here.
SHORT_TEXT_TOKENS = {"e5-": 400, "bge-small": 400, "bge-base": 400, "bge-large": 400, "mxbai-": 400, "minilm": 200}
LOCAL_DIMENSIONS = 384
KNOWN_DIMENSIONS = {
    "text-embedding-3-small": 1_536,
    "text-embedding-3-large": 3_072,
    "text-embedding-ada-002": 1_536,
}
# The cosine at which unrelated texts lie in a space, by a part of its name; 0 in the others. e5's lets the default
# threshold cut at .79 (bench_retrieval --calibration): under 1 % of the right answers are lost, and most questions on
# other subjects find nothing. At .73, 3 % would be lost, and a fifth of those to questions of two words.
UNRELATED_COSINES = {"e5-": 0.705, "text-embedding-ada-002": 0.7}
# e5's texts carry one of these in front; the local model writes them itself.
E5_QUESTION, E5_PASSAGE = "query: ", "passage: "
SERVICE = "The embedding service"
Answer = TypeVar("Answer")


class EmbeddingError(ProviderError):
    """There are no embeddings for now."""


@dataclass(frozen=True)
class EmbeddingSpace:
    """Vectors of one space can be compared, and only those. Dimensions are None where only the API knows them."""

    name: str
    dimensions: int | None


@dataclass(frozen=True)
class _Service:
    base_url: str
    key: str = field(repr=False)
    space: EmbeddingSpace
    policy: AddressPolicy


def space_of(model: MLModel) -> EmbeddingSpace:
    """Return the space the model's vectors lie in."""
    if _has_own_service(model) or model.embedding_model == LOCAL_EMBEDDING:
        name = model.embedding_model
    else:  # one that is named without a provider is not asked for: the operator pays, and chooses
        name = settings.SITEWISE_EMBEDDING_URL and settings.SITEWISE_EMBEDDING_MODEL
    if not name or name == LOCAL_EMBEDDING:
        return EmbeddingSpace(LOCAL_EMBEDDING, LOCAL_DIMENSIONS)
    return EmbeddingSpace(name, KNOWN_DIMENSIONS.get(name))


def embed_passages(model: MLModel, texts: list[str]) -> np.ndarray:
    """Return one unit row for each text, shape (len(texts), dimensions); raises EmbeddingError."""
    space = space_of(model)
    if space.name == LOCAL_EMBEDDING:
        return _ask_locally(lambda embedder: embedder.embed_passages(texts))
    return _embed_remotely(model, space, [_sendable(space, E5_PASSAGE, text) for text in texts])


def embed_question(model: MLModel, text: str) -> np.ndarray:
    """Return the unit vector of a question, shape (dimensions,); raises EmbeddingError."""
    space = space_of(model)
    if space.name == LOCAL_EMBEDDING:
        return _ask_locally(lambda embedder: embedder.embed_question(text))
    return _embed_remotely(model, space, [_sendable(space, E5_QUESTION, text)])[0]


def fits_window(model: MLModel, text: str) -> bool:
    """Return whether one vector can stand for the whole passage; raises EmbeddingError."""
    space = space_of(model)
    if space.name == LOCAL_EMBEDDING:
        return _ask_locally(lambda embedder: embedder.fits_window(text))
    return count_tokens(_marked(space, E5_PASSAGE, text), space.name) <= _token_limit(space)


def calibrate(space_name: str, cosine: float) -> float:
    """Return the cosine stretched so that unrelated texts lie near 0 and equal ones at 1."""
    start = _unrelated_cosine(space_name)
    return (cosine - start) / (1 - start)


def raw_cutoff(space_name: str, calibrated: float) -> float:
    """Return the cosine of the space that calibrates to the given value."""
    start = _unrelated_cosine(space_name)
    return start + (1 - start) * calibrated


def _unrelated_cosine(space_name: str) -> float:
    return next((cosine for part, cosine in UNRELATED_COSINES.items() if part in space_name.lower()), 0.0)


def _marked(space: EmbeddingSpace, prefix: str, text: str) -> str:
    return f"{prefix}{text}" if "e5-" in space.name.lower() else text


def _sendable(space: EmbeddingSpace, prefix: str, text: str) -> str:
    # OpenAI refuses an empty text.
    return truncate_to_tokens(_marked(space, prefix, text), _token_limit(space), space.name) or " "


def _token_limit(space: EmbeddingSpace) -> int:
    return next((tokens for part, tokens in SHORT_TEXT_TOKENS.items() if part in space.name.lower()), MAX_TEXT_TOKENS)


def _ask_locally(ask: Callable[["LocalEmbedder"], Answer]) -> Answer:
    try:
        # Imported at its first use: with an embedding API the runtime's memory is never needed.
        from models_app.local_embedder import local_embedder

        return ask(local_embedder())
    except ModelFilesMissing as error:
        raise EmbeddingError(Reason.NOT_SET, str(error)) from error
    except Exception as error:  # onnxruntime's errors share no class of their own
        message = f"The local embedding model does not run ({type(error).__name__}): run `{FETCH_COMMAND}`."
        raise EmbeddingError(Reason.AWAY, message) from error


def _service_of(model: MLModel, space: EmbeddingSpace) -> _Service:
    """Return the API to ask: the tenant's own where it names an embedding model, else the operator's."""
    if _has_own_service(model):
        return _Service(model.provider_base_url, own_key(model, EmbeddingError), space, provider_policy())
    return _Service(settings.SITEWISE_EMBEDDING_URL, settings.SITEWISE_EMBEDDING_KEY, space, operators_policy())


def _has_own_service(model: MLModel) -> bool:
    return bool(model.embedding_model and model.provider_base_url)


def _embed_remotely(model: MLModel, space: EmbeddingSpace, texts: list[str]) -> np.ndarray:
    service = _service_of(model, space)
    batches = [async_to_sync(_embed_batch)(service, batch) for batch in _batches(texts, space.name)]
    if len({batch.shape[1] for batch in batches}) > 1:
        raise EmbeddingError(Reason.BROKEN_ANSWER, f"{SERVICE} sent vectors of different dimensions.")
    return np.concatenate(batches) if batches else np.empty((0, space.dimensions or 0), np.float32)


def _batches(texts: list[str], name: str) -> Iterator[list[str]]:
    batch, batch_tokens = [], 0
    for text in texts:
        tokens = count_tokens(text, name)
        if batch and (len(batch) == MAX_BATCH_TEXTS or batch_tokens + tokens > MAX_BATCH_TOKENS):
            yield batch
            batch, batch_tokens = [], 0
        batch.append(text)
        batch_tokens += tokens
    if batch:
        yield batch


async def _embed_batch(service: _Service, texts: list[str]) -> np.ndarray:
    """Return the batch's unit rows; what an answer leaves out is asked for once more."""
    rows: dict[int, np.ndarray] = {}

    async def ask(deadline: float) -> None:
        missing = [position for position in range(len(texts)) if position not in rows]
        request = {"model": service.space.name, "input": [texts[position] for position in missing]}
        async with connected(service.base_url, service.key, service.policy, deadline) as client:
            # The client asks for base64 unless told otherwise, which not every server knows.
            request["encoding_format"] = "float"
            answer = await ask_whole(client, client.embeddings.create, request, deadline)
        if not isinstance(answer.get("data"), list):
            raise NotSpoken(service.base_url)
        for index, row in _read_rows(answer, len(missing)):
            rows[missing[index]] = row
        if len(rows) < len(texts):
            raise EmbeddingError(Reason.BROKEN_ANSWER, f"{SERVICE} left out {len(texts) - len(rows)} of its vectors.")

    await with_one_retry(ask, settings.SITEWISE_LLM_TIMEOUT_SECONDS, EmbeddingError, SERVICE)
    return _unit_rows([rows[position] for position in range(len(texts))], service.space)


def _read_rows(answer: dict, count: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield each vector with the index the server gave it: its place in the list says nothing."""
    for part in answer["data"]:
        index = part.get("index") if isinstance(part, dict) else None
        if not isinstance(index, int) or not 0 <= index < count:
            raise EmbeddingError(Reason.BROKEN_ANSWER, f"{SERVICE} sent a vector that belongs to no text.")
        yield index, _row(part.get("embedding"))


def _row(embedding: object) -> np.ndarray:
    try:
        return np.asarray(embedding, np.float32)
    except (TypeError, ValueError):
        raise EmbeddingError(Reason.BROKEN_ANSWER, f"{SERVICE} sent a vector that is none.") from None


def _unit_rows(rows: list[np.ndarray], space: EmbeddingSpace) -> np.ndarray:
    dimensions = space.dimensions or rows[0].size
    if any(row.shape != (dimensions,) for row in rows) or not dimensions:
        raise EmbeddingError(Reason.BROKEN_ANSWER, f"{SERVICE} sent vectors of wrong dimensions.")
    matrix = np.stack(rows)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not (np.isfinite(matrix).all() and (lengths > 0).all()):
        raise EmbeddingError(Reason.BROKEN_ANSWER, f"{SERVICE} sent vectors without a direction.")
    return matrix / lengths
