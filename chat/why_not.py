"""Why a snippet is, or is not, in the context of an answer: what retrieval says of it, and what the budget did."""

from collections.abc import Sequence
from dataclasses import dataclass

from chat.context import Context, PackedHit, get_context
from models_app.explain import Cause, Cut, Explanation, Finding, explain, ordinal
from models_app.models import MLModel, Retrieval, TrainingSnippet


@dataclass(frozen=True)
class Verdict:
    """What became of a snippet under one retrieval: the one thing that cut it, or its place in the context."""

    context: Context
    explanation: Explanation
    packed: PackedHit | None

    @property
    def mode(self) -> str:
        return self.context.mode

    @property
    def finding(self) -> Finding:
        return self.explanation.findings[self.mode]

    @property
    def is_used(self) -> bool:
        return self.packed is not None and self.packed.is_used

    @property
    def cut(self) -> Cut | None:
        """The cause, of which there is exactly one unless the snippet is used."""
        if self.packed is None or self.packed.is_used:
            return self.finding.cut
        return Cut(Cause.BUDGET, self._over_budget(self.packed))

    @property
    def words(self) -> str:
        """The verdict with its numbers, as it is told."""
        if self.cut:
            return self.cut.words
        how_much = "is in the context, cut to" if self.packed.is_cut else "is in the context with"
        return f"It ranks {ordinal(self.packed.hit.rank)} and {how_much} {self.packed.tokens:,} tokens."

    @property
    def other_cuts(self) -> list[tuple[str, Cut]]:
        """What each leg says beside the verdict: a leg by itself may not have found what the other found."""
        legs = (("Meaning", self.finding.semantic_cut), ("Words", self.finding.keyword_cut))
        return [(leg, cut) for leg, cut in legs if cut and cut != self.cut]

    def _over_budget(self, packed: PackedHit) -> str:
        place, left = ordinal(packed.hit.rank), packed.tokens_left
        if packed.tokens > left:
            has = f"It ranks {place} and has {packed.tokens:,} tokens"
            return f"{has}; {left:,} of {self.context.budget:,} were left."
        return f"It ranks {place} and would fit by itself, but all together were over {self.context.budget:,} tokens."


def why_not(
    model: MLModel, question: str, snippet: TrainingSnippet, earlier_questions: Sequence[str] = ()
) -> list[Verdict]:
    """Return what becomes of the snippet under each of the three retrievals, with the model's settings as they are."""
    contexts = [get_context(model, question, earlier_questions, mode) for mode in Retrieval.values]
    # A follow-up may be searched for with what it is about under one retrieval, and by itself under another.
    explanations = {query: explain(model, query, snippet) for query in {context.query for context in contexts}}
    return [Verdict(context, explanations[context.query], _packed(context, snippet)) for context in contexts]


def _packed(context: Context, snippet: TrainingSnippet) -> PackedHit | None:
    return next((packed for packed in context.packed if packed.hit.id == snippet.pk), None)
