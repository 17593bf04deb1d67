"""A local embedding API in whose space every question is [1, 0], and how near a snippet is to all of them is given."""

import math

import numpy as np

from models_app import index
from models_app.embedder import space_of
from models_app.models import MLModel
from tests.fakes.openai_server import OpenAIServer


class NearServer(OpenAIServer):
    """Use it as a context manager."""

    def vector_of(self, text: str) -> list[float]:
        return [1.0, 0.0]


def answer_by(model: MLModel, server: OpenAIServer) -> None:
    """Let the model's embeddings be made by the server."""
    model.embedding_model, model.provider_base_url, model.provider_key = "tiny", server.url, "sk-own"
    model.save()


def place(model: MLModel, cosines: dict[int, float | list[float]]) -> None:
    """Give snippets (by their ids) vectors with these cosines to any question, several for one of several windows."""
    all_of = {key: np.atleast_1d(given) for key, given in cosines.items()}
    ids = [key for key, given in all_of.items() for _ in given]
    rows = [(cosine, math.sqrt(1 - cosine**2)) for given in all_of.values() for cosine in given]
    index.put_vectors(model.pk, space_of(model).name, ids, np.array(rows))
    model.snippets.filter(pk__in=ids).update(embedded_in=space_of(model).name)
