"""What the dashboard says about models at a glance: what each knows, whether its vectors stand, what it is doing."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Count, Max, QuerySet

from models_app.embedder import space_of
from models_app.jobs import Job
from models_app.models import MLModel, TrainingSnippet


@dataclass(frozen=True)
class ModelOverview:
    """One model's numbers and its latest jobs."""

    model: MLModel
    snippet_count: int
    vector_count: int  # in the space that is wanted
    answering_count: int  # found by meaning: a vector stands for them in the space that answers
    turn_count: int
    last_import: Job | None
    last_vectorising: Job | None

    @property
    def missing_count(self) -> int:
        """How many vectors the model's retrieval needs and does not have."""
        return self.snippet_count - self.vector_count if self.model.needs_vectors else 0

    @property
    def is_switching(self) -> bool:
        """Whether other vectors answer until those that are wanted are complete."""
        return bool(self.missing_count) and self.answering_count > self.vector_count

    @property
    def is_importing(self) -> bool:
        return self.last_import is not None and self.last_import.is_open

    @property
    def is_vectorising(self) -> bool:
        return self.last_vectorising is not None and self.last_vectorising.is_open

    @property
    def is_busy(self) -> bool:
        return self.is_importing or self.is_vectorising


def overviews(models: QuerySet[MLModel]) -> list[ModelOverview]:
    """Return the overview of each model, in the order given; the number of queries does not grow with them."""
    # Turns and imports belong to the apps above this one: the reverse relations tell of them without importing those.
    turn_counts = dict(models.order_by().values_list("pk").annotate(Count("turns")))
    snippet_counts = _snippet_counts(models)
    imports, vectorisings = _latest_jobs(models, "imports"), _latest_jobs(models, "vectorisings")
    return [
        ModelOverview(
            model=model,
            snippet_count=sum(snippet_counts[model.pk].values()),
            vector_count=snippet_counts[model.pk][space_of(model).name],
            answering_count=_answering_count(model, snippet_counts[model.pk]),
            turn_count=turn_counts.get(model.pk, 0),
            last_import=imports.get(model.pk),
            last_vectorising=vectorisings.get(model.pk),
        )
        for model in models
    ]


def overview_of(model: MLModel) -> ModelOverview:
    """Return the overview of one model."""
    return overviews(MLModel.objects.filter(pk=model.pk))[0]


def _answering_count(model: MLModel, counts: Mapping[str, int]) -> int:
    """Return how many snippets answer by their vectors: also those that have the next ones already."""
    return sum(counts[name] for name in {model.answering_space, space_of(model).name} - {""})


def _snippet_counts(models: QuerySet[MLModel]) -> Mapping[int, Mapping[str, int]]:
    """Return how many snippets each model has in each embedding space."""
    counts: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    rows = TrainingSnippet.objects.filter(model__in=models.values("pk")).order_by().values_list("model", "embedded_in")
    for model_id, space, count in rows.annotate(Count("pk")):
        counts[model_id][space] = count
    return counts


def _latest_jobs(models: QuerySet[MLModel], relation: str) -> dict[int, Job]:
    """Return the newest job of each model that has one."""
    job_class = MLModel._meta.get_field(relation).related_model
    newest = models.order_by().annotate(newest=Max(relation)).values("newest")
    return {job.model_id: job for job in job_class.objects.filter(pk__in=newest)}
