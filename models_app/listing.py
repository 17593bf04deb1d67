"""Which of a model's snippets a person looks at, and in which order: searched, of one page, in one state, ticked."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from django.db.models import Count, Q, QuerySet

from models_app.models import MLModel, Retrieval, TrainingSnippet
from models_app.retrieval import retrieve
from models_app.switching import without_vector

FILTERS = {
    "": "All snippets",
    "conflict": "In conflict with their page",
    "edited": "Edited by hand",
    "no-vector": "Without a vector",
    **dict(TrainingSnippet.Source.choices),
}
SORTS = {"": ("In page order", ("uri", "position", "pk")), "newest": ("Newest first", ("-pk",))}
SORTS["largest"] = ("Largest first", ("-token_count", "pk"))
PAGES_OFFERED = 30
NUMBER = re.compile("[0-9]{1,18}")


@dataclass(frozen=True)
class Listing:
    """What the training data tab is narrowed to, as its address says it: `?q=…&uri=…&show=…&sort=…`."""

    words: str
    uri: str
    shown: str
    sort: str

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> "Listing":
        """Return the listing of an address; what it does not know there it leaves out."""
        shown, sort = fields.get("show", ""), fields.get("sort", "")
        return cls(
            words=fields.get("q", "").strip(),
            uri=fields.get("uri", "").strip(),
            shown=shown if shown in FILTERS else "",
            sort=sort if sort in SORTS else "",
        )

    @property
    def is_narrowed(self) -> bool:
        return bool(self.words or self.uri or self.shown)

    def ids(self, model: MLModel) -> QuerySet:
        """Return the ids of what is listed, in its order: a page of them is cut off without sorting whole texts."""
        found = _searched(_of_page(_in_state(model, self.shown), model, self.uri), model, self.words)
        return found.order_by(*SORTS[self.sort][1]).values_list("pk", flat=True)


def _in_state(model: MLModel, shown: str) -> QuerySet[TrainingSnippet]:
    if shown == "edited":
        return model.snippets.filter(is_edited=True)
    if shown == "conflict":
        return model.snippets.exclude(conflict=TrainingSnippet.Conflict.NONE)
    if shown == "no-vector":
        return without_vector(model)
    return model.snippets.filter(source=shown) if shown else model.snippets.all()


def _of_page(found: QuerySet[TrainingSnippet], model: MLModel, uri: str) -> QuerySet[TrainingSnippet]:
    """Narrow to one page's snippets, or to those of all addresses that hold what was typed: `/blog/`."""
    if not uri:
        return found
    is_page = model.snippets.filter(uri=uri).exists()
    return found.filter(uri=uri) if is_page else found.filter(uri__icontains=uri)


def _searched(found: QuerySet[TrainingSnippet], model: MLModel, words: str) -> QuerySet[TrainingSnippet]:
    """Narrow to what holds the words as typed so far, and to what the keyword leg finds for them."""
    if not words:
        return found
    ranked = [hit.id for hit in retrieve(model, words, mode=Retrieval.KEYWORD).hits]
    holds = Q(prompt__icontains=words) | Q(completion__icontains=words) | Q(uri__icontains=words)
    return found.filter(holds | Q(pk__in=ranked))


def titled_first(model: MLModel, words: str, count: int) -> list[TrainingSnippet]:
    """Return the first snippets that hold the words as typed so far: in the title, by relevance, anywhere else."""
    titled = model.snippets.filter(prompt__icontains=words).order_by("pk")
    ids = list(titled.values_list("pk", flat=True)[:count])
    if len(ids) < count:
        ids += [hit.id for hit in retrieve(model, words, mode=Retrieval.KEYWORD, limit=count).hits]
    if len(set(ids)) < count:
        holds = model.snippets.filter(Q(completion__icontains=words) | Q(uri__icontains=words)).order_by("pk")
        ids += holds.values_list("pk", flat=True)[:count]
    rows = model.snippets.in_bulk(ids)
    return [rows[pk] for pk in dict.fromkeys(ids) if pk in rows][:count]


def pages_with(model: MLModel, typed: str) -> list[tuple[str, int]]:
    """Return the first addresses that hold what was typed, each with how many snippets come from it."""
    pages = model.snippets.exclude(uri="").filter(uri__icontains=typed.strip())
    return list(pages.order_by("uri").values_list("uri").annotate(Count("pk"))[:PAGES_OFFERED])


def as_ranges(ids: Iterable[int]) -> str:
    """Return ids as a text to be sent on: `3-7,12`. A whole model's are a few characters."""
    ordered = sorted(set(ids))
    ends = [place for place, (one, other) in enumerate(pairwise(ordered)) if other != one + 1]
    starts = [0, *(place + 1 for place in ends)] if ordered else []
    ends = [*ends, len(ordered) - 1]
    return ",".join(
        f"{ordered[start]}-{ordered[end]}" if end > start else f"{ordered[start]}"
        for start, end in zip(starts, ends, strict=False)
    )


def in_ranges(texts: Iterable[str], standing: Iterable[int]) -> list[int]:
    """Return those of the standing ids that the texts name; what is no range names nothing."""
    ranges = []
    for part in ",".join(texts).split(","):
        first, _, last = part.strip().partition("-")
        if NUMBER.fullmatch(first) and NUMBER.fullmatch(last or first):
            ranges.append((int(first), int(last or first)))
    ranges.sort()
    wanted, place = [], 0
    for pk in sorted(standing):
        while place < len(ranges) and ranges[place][1] < pk:
            place += 1
        if place < len(ranges) and ranges[place][0] <= pk:
            wanted.append(pk)
    return wanted
