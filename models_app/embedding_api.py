"""Asks an OpenAI-compatible API for embeddings, and takes nothing from it that is not exactly what was asked for.

Texts go in batches; within one deadline a batch is asked for again where that may help. Which API, and how long a text
may be, is decided in embedder.py.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from asgiref.sync import async_to_sync
from django.conf import settings

from models_app.llm import NotSpoken, ProviderError, Reason, ask_whole, connected, with_one_retry
from models_app.llm_chunks import Usage
from models_app.patience import ask_patiently
from models_app.tokens import count_tokens
from tenants.addresses import AddressPolicy

# What the smaller servers take in one request by default (text-embeddings-inference); OpenAI takes far more.
MAX_BATCH_TEXTS = 32
MAX_BATCH_TOKENS = 16_000
# Nobody waits in front of vectors that are being made: a limit of so many a minute is waited out.
PATIENT_DEADLINE_ANSWERS = 3
SERVICE = "The embedding service"


class EmbeddingError(ProviderError):
    """There are no embeddings for now."""


class TextRefused(EmbeddingError):
    """The service refuses this one of the texts, and would take the others."""

    def __init__(self, position: int, error: EmbeddingError):
        super().__init__(error.reason, error.message)
        self.position = position


@dataclass(frozen=True)
class Service:
    """Where an embedding model is, its name there, how long its vectors are if that is known, what may be reached."""

    base_url: str
    key: str = field(repr=False)
    model: str
    dimensions: int | None
    policy: AddressPolicy = field(repr=False)


def ask_for_vectors(
    service: Service, texts: list[str], is_patient: bool = False, usage: Usage | None = None
) -> np.ndarray:
    """Return one unit row for each text, shape (len(texts), dimensions); adds to the usage what that took.

    Who is patient waits for as long as the service asks to when its limit is reached. Raises EmbeddingError, and
    TextRefused where one text is to blame.
    """
    usage = usage or Usage()
    batches, done = [], 0
    for batch in _batches(texts, service.model):
        batches.append(_ask_or_halve(service, batch, done, is_patient, usage))
        done += len(batch)
    if len({batch.shape[1] for batch in batches}) > 1:
        raise EmbeddingError(Reason.BROKEN_ANSWER, f"{SERVICE} sent vectors of different dimensions.")
    return np.concatenate(batches) if batches else np.empty((0, service.dimensions or 0), np.float32)


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


def _ask_or_halve(service: Service, texts: list[str], start: int, is_patient: bool, usage: Usage) -> np.ndarray:
    """Return the texts' rows; a request that is refused is sent in halves, down to the text that is to blame."""
    try:
        return async_to_sync(_ask)(service, texts, is_patient, usage)
    except EmbeddingError as error:
        if error.reason != Reason.REFUSED_REQUEST:
            raise
        if len(texts) == 1:
            raise TextRefused(start, error) from None
    middle = len(texts) // 2
    first = _ask_or_halve(service, texts[:middle], start, is_patient, usage)
    second = _ask_or_halve(service, texts[middle:], start + middle, is_patient, usage)
    if first.shape[1] != second.shape[1]:
        raise EmbeddingError(Reason.BROKEN_ANSWER, f"{SERVICE} sent vectors of different dimensions.")
    return np.concatenate([first, second])


async def _ask(service: Service, texts: list[str], is_patient: bool, usage: Usage) -> np.ndarray:
    """Return the unit rows of one request; what an answer leaves out is asked for once more."""
    rows: dict[int, np.ndarray] = {}

    async def ask(deadline: float) -> None:
        missing = [position for position in range(len(texts)) if position not in rows]
        request = {"model": service.model, "input": [texts[position] for position in missing]}
        async with connected(service.base_url, service.key, service.policy, deadline) as client:
            # The client asks for base64 unless told otherwise, which not every server knows.
            request["encoding_format"] = "float"
            answer = await ask_whole(client, client.embeddings.create, request, deadline)
        if not isinstance(answer.get("data"), list):
            raise NotSpoken(service.base_url)
        usage.add(answer, sum(count_tokens(text, service.model) for text in request["input"]))
        for index, row in _read_rows(answer, len(missing)).items():
            rows[missing[index]] = row
        if len(rows) < len(texts):
            raise EmbeddingError(Reason.BROKEN_ANSWER, f"{SERVICE} left out {len(texts) - len(rows)} of its vectors.")

    seconds = settings.SITEWISE_LLM_TIMEOUT_SECONDS
    if is_patient:
        await ask_patiently(ask, seconds, seconds * PATIENT_DEADLINE_ANSWERS, EmbeddingError, SERVICE)
    else:
        await with_one_retry(ask, seconds, EmbeddingError, SERVICE)
    return _unit_rows([rows[position] for position in range(len(texts))], service.dimensions)


def _read_rows(answer: dict, count: int) -> dict[int, np.ndarray]:
    """Return each vector by the index the server gave it: its place in the list says nothing."""
    rows = {}
    for part in answer["data"]:
        index = part.get("index") if isinstance(part, dict) else None
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count:
            raise EmbeddingError(Reason.BROKEN_ANSWER, f"{SERVICE} sent a vector that belongs to no text.")
        if index in rows:
            raise EmbeddingError(Reason.BROKEN_ANSWER, f"{SERVICE} sent two vectors for one text.")
        rows[index] = _row(part.get("embedding"))
    return rows


def _row(embedding: object) -> np.ndarray:
    try:
        return np.asarray(embedding, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise EmbeddingError(Reason.BROKEN_ANSWER, f"{SERVICE} sent a vector that is none.") from None


def _unit_rows(rows: list[np.ndarray], dimensions: int | None) -> np.ndarray:
    dimensions = dimensions or rows[0].size
    if any(row.shape != (dimensions,) for row in rows) or not dimensions:
        raise EmbeddingError(Reason.BROKEN_ANSWER, f"{SERVICE} sent vectors of wrong dimensions.")
    matrix = np.stack(rows)
    # First by the largest number: the squares of numbers that a double holds may not fit one.
    largest = np.abs(matrix).max(axis=1, keepdims=True)
    if not (np.isfinite(largest).all() and (largest > 0).all()):
        raise EmbeddingError(Reason.BROKEN_ANSWER, f"{SERVICE} sent vectors without a direction.")
    matrix = matrix / largest
    return (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
