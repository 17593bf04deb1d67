"""What making a model's vectors takes, and has taken: how many, tokens, money, time; and what answers meanwhile."""

from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Sum

from models_app import snippets
from models_app.embedder import EmbeddingSpace, answering_space, space_of
from models_app.models import MLModel, Vectorising
from models_app.switching import without_vector

PRICED_TOKENS = 1_000_000
LEAST_MADE = 32  # a batch: fewer say nothing of the pace


@dataclass(frozen=True)
class VectorWork:
    """The vectors of a model in the space that is wanted: made, missing, and under way."""

    model: MLModel
    wanted: EmbeddingSpace
    answering: EmbeddingSpace
    with_vector: int
    total: int
    tokens: int  # of the snippets that lack theirs, as we count them
    unanswered: int  # snippets that no vector which answers stands for
    job: Vectorising | None  # the latest
    per_second: float | None  # snippets, as this run or the last one in this space went

    @classmethod
    def of(cls, model: MLModel) -> "VectorWork":
        """Return the work there is for the model now."""
        wanted, answering = space_of(model), answering_space(model)
        with_vector, total = snippets.vector_counts(model)
        tokens = snippets.missing_vectors(model).aggregate(tokens=Sum("token_count"))["tokens"] or 0
        measured = model.vectorisings.filter(space=wanted.name, made_count__gte=LEAST_MADE, worked_seconds__gt=0)
        last = measured.first()
        return cls(
            model=model,
            wanted=wanted,
            answering=answering,
            with_vector=with_vector,
            total=total,
            tokens=tokens,
            unanswered=without_vector(model).count(),
            job=model.vectorisings.first(),
            per_second=last.made_count / last.worked_seconds if last else None,
        )

    @property
    def missing(self) -> int:
        return self.total - self.with_vector

    @property
    def is_switching(self) -> bool:
        """Whether other vectors answer until the wanted ones are complete."""
        return self.answering != self.wanted and self.unanswered < self.total

    @property
    def seconds_left(self) -> float | None:
        return self.missing / self.per_second if self.per_second and self.missing else None

    @property
    def cost_to_come(self) -> Decimal | None:
        """What the missing vectors cost at the model's price, about; None where no price is set, or none is asked."""
        return self._cost(self.tokens)

    @property
    def cost_so_far(self) -> Decimal | None:
        """What this run has cost."""
        return self._cost(self.job.token_count) if self.job else None

    def _cost(self, tokens: int) -> Decimal | None:
        price = self.model.embedding_price
        return None if price is None or self.wanted.is_local else tokens * price / PRICED_TOKENS
