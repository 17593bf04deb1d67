"""The port to embeddings: the local model, or an OpenAI-compatible API. Every vector is a unit row of float32.

A vector belongs to a space: that of one model at one provider. Which space a model of ours wants, and which one its
stored vectors answer in meanwhile, is told here; how they change places is in switching.py.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import numpy as np
from django.conf import settings

from models_app.embedding_api import EmbeddingError, Service, TextRefused, ask_for_vectors
from models_app.llm import Reason
from models_app.llm_chunks import Usage
from models_app.model_files import FETCH_COMMAND, ModelFilesMissing
from models_app.models import LOCAL_EMBEDDING, MLModel
from models_app.tokens import count_tokens, truncate_to_tokens
from tenants import secrets
from tenants.addresses import operators_policy, provider_policy

if TYPE_CHECKING:
    from models_app.local_embedder import LocalEmbedder

__all__ = ["EmbeddingError", "TextRefused"]

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
# e5's texts carry one of these in front; the local model writes them itself.
E5_QUESTION, E5_PASSAGE = "query: ", "passage: "
LONGEST_NAME = 100  # of a space, as the store holds it
SERVICE_LEFT = "The embedding service that made the vectors which answer is not set any more: press Vectorise."
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class EmbeddingSpace:
    """Vectors of one space can be compared, and only those; also what it takes to embed a text in it.

    The name says of which model at which provider they are, as a model of the same name elsewhere may be another one.
    Dimensions are None where only the API knows them.
    """

    name: str
    dimensions: int | None
    model: str = field(compare=False)  # as it is called at its provider
    own_url: str = field(default="", compare=False)  # the tenant's provider; empty: the operator's, or the local model
    own_key_encrypted: str = field(default="", repr=False, compare=False)

    @property
    def is_local(self) -> bool:
        return self.name == LOCAL_EMBEDDING


LOCAL_SPACE = EmbeddingSpace(LOCAL_EMBEDDING, LOCAL_DIMENSIONS, LOCAL_EMBEDDING)


def space_of(model: MLModel) -> EmbeddingSpace:
    """Return the space that is wanted for the model's vectors: of the embedding model that is set for it now."""
    if model.embedding_model == LOCAL_EMBEDDING:
        return LOCAL_SPACE
    if model.embedding_model and model.provider_base_url:
        url, key = model.provider_base_url, model.provider_key_encrypted
        return _space(_name_of(model.embedding_model, url), model.embedding_model, url, key)
    # One that is named without a provider is not asked for: the operator pays, and chooses.
    asked, url = settings.SITEWISE_EMBEDDING_MODEL, settings.SITEWISE_EMBEDDING_URL
    return _space(_name_of(asked, url), asked) if url and asked != LOCAL_EMBEDDING else LOCAL_SPACE


def answering_space(model: MLModel) -> EmbeddingSpace:
    """Return the space of the vectors that answer, as the store says now: not the wanted one until that is complete."""
    stored = MLModel.objects.filter(pk=model.pk).first() or model  # the one in hand may be as old as a conversation
    wanted, name = space_of(stored), stored.answering_space
    if name in ("", wanted.name):
        return wanted
    if name == LOCAL_EMBEDDING:
        return LOCAL_SPACE
    return _space(name, stored.answering_model, stored.answering_base_url, stored.answering_key_encrypted)


def _space(name: str, asked: str, own_url: str = "", own_key_encrypted: str = "") -> EmbeddingSpace:
    return EmbeddingSpace(name, KNOWN_DIMENSIONS.get(asked), asked, own_url, own_key_encrypted)


def _name_of(asked: str, url: str) -> str:
    """Return the name of the space of a model at a provider: without what may be secret in the provider's address."""
    parts = urlsplit(url)
    name = f"{asked} at {parts.netloc.rpartition('@')[2].lower()}{parts.path.rstrip('/')}"
    return name if len(name) <= LONGEST_NAME else f"{asked[:60]} at {sha256(name.encode()).hexdigest()[:16]}"


def embed_passages(space: EmbeddingSpace, texts: list[str], usage: Usage | None = None) -> np.ndarray:
    """Return one unit row for each text, shape (len(texts), dimensions); raises EmbeddingError.

    Adds to the usage what an API was sent. TextRefused says which text the API does not take.
    """
    if space.is_local:
        return _ask_locally(lambda embedder: embedder.embed_passages(texts))
    sent = [_sendable(space, E5_PASSAGE, text) for text in texts]
    return ask_for_vectors(_service_of(space), sent, is_patient=True, usage=usage)


def embed_question(space: EmbeddingSpace, text: str) -> np.ndarray:
    """Return the unit vector of a question, shape (dimensions,); raises EmbeddingError."""
    return embed_questions(space, [text])[0]


def embed_questions(space: EmbeddingSpace, texts: list[str]) -> np.ndarray:
    """Return one unit row for each question, shape (len(texts), dimensions); raises EmbeddingError."""
    if space.is_local:
        return _ask_locally(lambda embedder: np.stack([embedder.embed_question(text) for text in texts]))
    return ask_for_vectors(_service_of(space), [_sendable(space, E5_QUESTION, text) for text in texts])


def fits_window(space: EmbeddingSpace, text: str, most_tokens: int = MAX_TEXT_TOKENS) -> bool:
    """Return whether one vector can stand for the whole passage; raises EmbeddingError."""
    if space.is_local:
        return _ask_locally(lambda embedder: embedder.fits_window(text))
    return passage_tokens(space, text) <= min(most_tokens, _token_limit(space))


def passage_tokens(space: EmbeddingSpace, text: str) -> int:
    """Return how many tokens of the passage an API is sent at most, as we count them."""
    return count_tokens(_marked(space, E5_PASSAGE, text), space.model)


def _marked(space: EmbeddingSpace, prefix: str, text: str) -> str:
    return f"{prefix}{text}" if "e5-" in space.model.lower() else text


def _sendable(space: EmbeddingSpace, prefix: str, text: str) -> str:
    # OpenAI refuses an empty text.
    return truncate_to_tokens(_marked(space, prefix, text), _token_limit(space), space.model) or " "


def _token_limit(space: EmbeddingSpace) -> int:
    return next((tokens for part, tokens in SHORT_TEXT_TOKENS.items() if part in space.model.lower()), MAX_TEXT_TOKENS)


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


def _service_of(space: EmbeddingSpace) -> Service:
    """Return the API to ask: the tenant's own, or the operator's while it is where it was when the space began.

    The operator's key is in no tenant's store, and goes to no address but that of the settings.
    """
    if space.own_url:
        return Service(space.own_url, _own_key(space), space.model, space.dimensions, provider_policy())
    url = settings.SITEWISE_EMBEDDING_URL
    if not url or space.name != _name_of(space.model, url):
        raise EmbeddingError(Reason.NOT_SET, SERVICE_LEFT)
    return Service(url, settings.SITEWISE_EMBEDDING_KEY, space.model, space.dimensions, operators_policy())


def _own_key(space: EmbeddingSpace) -> str:
    try:
        return secrets.decrypt(space.own_key_encrypted)
    except secrets.SecretLost:
        message = "The provider's key can no longer be read: enter it again under Behaviour."
        raise EmbeddingError(Reason.LOST_KEY, message) from None
