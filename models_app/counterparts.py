"""Which snippet that stands a row of our own export was, before somebody changed the file in a spreadsheet or by hand.

A row is recognised by where it comes from and by its title, or, where its title was changed, by its text.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b

from django.db.models import Max, Q

from models_app.models import MLModel, TrainingSnippet
from models_app.sections import likeness

READ_AT_ONCE = 500
MOST_ALIKE = 50  # snippets of one title and place among which the one that was changed is looked for

Pair = tuple[TrainingSnippet, TrainingSnippet]


class Standing:
    """The snippets that a model has when an import of rows begins, of which each is one row's at most."""

    def __init__(self, model: MLModel):
        self._model = model
        self._last = model.snippets.aggregate(last=Max("pk"))["last"] or 0
        self._taken: set[int] = set()
        texts = model.snippets.order_by().values_list("prompt", "completion", "uri")
        self._left = Counter(_digest(*each) for each in texts.iterator(chunk_size=READ_AT_ONCE))

    def has(self, snippet: TrainingSnippet, is_ours: bool) -> bool:
        """Return whether the snippet stands: what our own export holds twice comes back twice, other rows once."""
        key = _digest_of(snippet)
        stands = self._left[key] > 0
        self._left[key] = self._left[key] - stands if is_ours else 1
        return stands

    def pairs(self, fresh: Sequence[TrainingSnippet]) -> list[Pair]:
        """Return those of the snippets that stand with another text or title, each after the row it was.

        None of them stands as it is: `has` was asked before, so that what was not changed finds its own row.
        """
        rows = self._rows_like(fresh)
        pairs = self._by(_title_of, fresh, rows)
        found = {id(each) for _, each in pairs}
        return pairs + self._by(_text_of, [each for each in fresh if id(each) not in found], rows)

    def _rows_like(self, fresh: Sequence[TrainingSnippet]) -> list[TrainingSnippet]:
        if not fresh or not self._last:
            return []
        like = Q(prompt__in={each.prompt for each in fresh}) | Q(completion__in={each.completion for each in fresh})
        before = self._model.snippets.filter(pk__lte=self._last, uri__in={each.uri for each in fresh})
        return list(before.filter(like).order_by("uri", "position", "pk"))

    def _by(
        self, key_of: Callable[[TrainingSnippet], tuple], fresh: Iterable[TrainingSnippet], rows: list[TrainingSnippet]
    ) -> list[Pair]:
        groups = defaultdict(list)
        for row in rows:
            groups[key_of(row)].append(row)
        pairs = []
        for each in fresh:
            group = groups[key_of(each)]
            if row := self._chosen(each, group):
                self._taken.add(row.pk)
                self._left[_digest_of(row)] -= 1
                pairs.append((row, each))
        return pairs

    def _chosen(self, snippet: TrainingSnippet, group: Sequence[TrainingSnippet]) -> TrainingSnippet | None:
        """Return the row of the group that the snippet was: of several one at the same place, the most alike."""
        free = [row for row in group if self._is_free(row) and _is_same_edit(snippet, row)]
        if len(group) > 1:
            free = [row for row in free if row.position == snippet.position]
        return max(free[:MOST_ALIKE], key=lambda row: likeness(row, snippet), default=None)

    def _is_free(self, row: TrainingSnippet) -> bool:
        """Whether no row of the file was found to be it, be it as it stands or changed."""
        return row.pk not in self._taken and self._left[_digest_of(row)] > 0


def _is_same_edit(snippet: TrainingSnippet, row: TrainingSnippet) -> bool:
    """Whether the file knows of no edit, or of one of the text that the row was edited from."""
    if not snippet.is_edited:
        return True
    sources = [(each.source_prompt, each.source_completion) for each in (snippet, row)]
    return row.is_edited and sources[0] == sources[1]


def _title_of(snippet: TrainingSnippet) -> tuple[str, str, str]:
    return snippet.source, snippet.uri, snippet.prompt


def _text_of(snippet: TrainingSnippet) -> tuple[str, str, str]:
    return snippet.source, snippet.uri, snippet.completion


def _digest_of(snippet: TrainingSnippet) -> bytes:
    return _digest(snippet.prompt, snippet.completion, snippet.uri)


def _digest(*texts: str) -> bytes:
    return blake2b("\0".join(texts).encode(), digest_size=16).digest()
