"""Sitewise behind the calls that the peers are timed by: a tenant's store, written and asked as the product does."""

import os
from pathlib import Path

import numpy as np

from tests import environment  # noqa: F401  a data folder of its own

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django
from django.conf import settings

django.setup()

from models_app import index  # noqa: E402
from models_app.index import IndexQuestion, SnippetText  # noqa: E402
from models_app.models import MLModel, TrainingSnippet  # noqa: E402
from models_app.terms import question_terms  # noqa: E402
from tenants.store import Store, activated, create_store, tenant_atomic  # noqa: E402

LEGS = {"sitewise keyword": index.KEYWORD, "sitewise semantic": index.SEMANTIC, "sitewise hybrid": index.HYBRID}
SPACE, TOP, BATCH = "bench", 10, 1_000


class Sitewise:
    """One model in one store; snippet i + 1 is text i."""

    def __init__(self, name: str, folder: Path, dimensions: int):
        self._mode, settings.STORES_DIR = LEGS[name], folder
        store = Store(1, "bench")
        is_new = not store.path.exists()
        if is_new:
            create_store(store)
        self._active = activated(store)  # left open: the process is the benchmark's
        self._active.__enter__()
        self._model = MLModel.objects.create(slug="bench", name="Bench") if is_new else MLModel.objects.get()

    def add(self, ids: list[int], texts: list[str], vectors: np.ndarray) -> None:
        for start in range(0, len(ids), BATCH):
            part = slice(start, start + BATCH)
            rows = [
                TrainingSnippet(pk=number + 1, model=self._model, completion=text, embedded_in=SPACE)
                for number, text in zip(ids[part], texts[part], strict=True)
            ]
            terms = [(row.pk, index.terms_of("", row.completion)) for row in rows]
            with tenant_atomic():
                TrainingSnippet.objects.bulk_create(rows, batch_size=500)
                index.add_terms(self._model.pk, terms)
                self._put([row.pk for row in rows], vectors[part])

    def update(self, number: int, text: str, vector: np.ndarray) -> None:
        row = TrainingSnippet.objects.get(pk=number + 1)
        terms = index.terms_of("", text)
        with tenant_atomic():
            index.remove_snippets(self._model.pk, [SnippetText(row.pk, row.prompt, row.completion)])
            TrainingSnippet.objects.filter(pk=row.pk).update(completion=text)
            index.add_terms(self._model.pk, [(row.pk, terms)])
            self._put([row.pk], vector[None])

    def _put(self, ids: list[int], vectors: np.ndarray) -> None:
        if self._mode != index.KEYWORD:
            index.put_vectors(self._model.pk, SPACE, ids, vectors)

    def open(self) -> None:
        """The store is open."""

    def ask(self, text: str, vector: np.ndarray) -> list[int]:
        asked = IndexQuestion(
            model_id=self._model.pk,
            mode=self._mode,
            terms=() if self._mode == index.SEMANTIC else tuple(question_terms(text)),
            vector=None if self._mode == index.KEYWORD else vector,
            space=SPACE,
            min_relevance=-1.0,
            keyword_share=0.0,
            limit=TOP,
        )
        return [hit.id - 1 for hit in index.search(asked)]
