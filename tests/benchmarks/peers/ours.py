"""Sitewise behind the calls that the peers are timed by: a tenant's store, written and asked as the product does."""

import os
import shutil
from pathlib import Path

import numpy as np

from tests import environment  # noqa: F401  a data folder of its own

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django
from django.conf import settings

django.setup()

from models_app import index  # noqa: E402
from models_app.index import IndexQuestion, SnippetText  # noqa: E402
from models_app.index.statement import POSTINGS_BUDGET  # noqa: E402
from models_app.models import MLModel, TrainingSnippet  # noqa: E402
from models_app.terms import question_terms  # noqa: E402
from tenants.store import Store, activated, create_store, tenant_atomic  # noqa: E402

SPACE, TOP, BATCH = "bench", 10, 1_000


class Sitewise:
    """One model in one store; snippet i + 1 is text i."""

    mode, leg, keeps = "", "", "on disk, in step with the rows"
    postings_budget = POSTINGS_BUDGET

    def __init__(self, folder: Path, dimensions: int):
        settings.STORES_DIR = folder
        self._store = Store(1, "bench")
        is_new = not self._store.path.exists()
        if is_new:
            create_store(self._store)
        self._active = activated(self._store)  # left open: the process is the benchmark's
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
        if self.mode != index.KEYWORD:
            index.put_vectors(self._model.pk, SPACE, ids, vectors)

    def crowd(self, tenants: int) -> None:
        """Lay the stores of so many other tenants into the folder, each a model with a few snippets."""
        few = Store(2, "other")
        create_store(few)
        with activated(few):
            model = MLModel.objects.create(slug="other", name="Other")
            texts = [SnippetText(number, "", f"What tenant {number} knows of its own shop") for number in range(1, 51)]
            TrainingSnippet.objects.bulk_create(
                TrainingSnippet(pk=each.id, model=model, completion=each.completion) for each in texts
            )
            index.add_snippets(model.pk, texts)
        for number in range(3, tenants + 2):
            shutil.copyfile(few.path, Store(number, "other").path)

    def files(self) -> list[Path]:
        """Return the files of this tenant's store alone."""
        return sorted(self._store.path.parent.glob(f"{self._store.path.name}*"))

    def open(self) -> None:
        """The store is open."""

    def close(self) -> None:
        self._active.__exit__(None, None, None)

    def ask(self, text: str, vector: np.ndarray) -> list[int]:
        asked = IndexQuestion(
            model_id=self._model.pk,
            mode=self.mode,
            terms=() if self.mode == index.SEMANTIC else tuple(question_terms(text)),
            vector=None if self.mode == index.KEYWORD else vector,
            space=SPACE,
            limit=TOP,
            postings_budget=self.postings_budget,
        )
        return [hit.id - 1 for hit in index.search(asked)]


class SitewiseKeyword(Sitewise):
    """Keyword retrieval."""

    mode, leg = index.KEYWORD, "keyword"


class SitewiseSemantic(Sitewise):
    """Semantic retrieval."""

    mode, leg = index.SEMANTIC, "vector"


class SitewiseHybrid(Sitewise):
    """Both legs in one statement."""

    mode, leg = index.HYBRID, "hybrid"


class SitewiseAllPostings(SitewiseKeyword):
    """Keyword retrieval that reads every posting of a question's terms: what the budget of postings costs."""

    postings_budget = 10**12


SITEWISE = {
    "sitewise hybrid": SitewiseHybrid,
    "sitewise semantic": SitewiseSemantic,
    "sitewise keyword": SitewiseKeyword,
    "sitewise all postings": SitewiseAllPostings,
}
