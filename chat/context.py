"""Retrieved snippets -> the context of one answer: what fits the token budget, in rank order, with its sources.

API, widget, test page and benchmark all call get_context, so that what is tested is what answers.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from models_app.models import MLModel
from models_app.retrieval import Retrieved, RetrievedSnippet, retrieve
from models_app.terms import EXACT_MARK, question_terms
from models_app.tokens import count_tokens, truncate_to_tokens

SEPARATOR = "\n\n---\n\n"
SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*(?=\s|$)|[。！？]|\n(?=\n)")
# Chosen on every other line of bench_follow_ups, told on the rest: a question with no more than one word that carries
# it is searched with the earlier ones alone; any other also by itself, which counts more than what it is about. With 2
# words, or the conversation counting as much, questions that change the subject lose; with none, follow-ups do.
FEWEST_WORDS = 1
WORTH_OF_CONVERSATION = 0.5
NAME = re.compile(r"[A-Z]{2}|\d|_")  # of codes and the like, of which one is a subject
TOPIC_WORDS = 2  # an earlier question of more words says what it is about: none before it is looked at
EARLIER_QUESTIONS = 3


@dataclass(frozen=True)
class PackedHit:
    """A hit and what became of it: the text it has, or would have, in the context, and whether it is in there."""

    hit: RetrievedSnippet
    is_used: bool
    tokens: int
    block: str
    is_cut: bool = False
    tokens_left: int = 0  # of the budget when its turn came


@dataclass(frozen=True)
class Source:
    """Where a part of the context comes from; the url is empty for a snippet written by hand or from a file."""

    rank: int
    title: str
    url: str


@dataclass(frozen=True)
class Context:
    """What an answer may stand on: its text is never over the budget. Empty when nothing was found."""

    text: str
    packed: tuple[PackedHit, ...]
    tokens: int
    budget: int
    mode: str
    query: str  # what was searched for: the question, and for a follow-up what it is about
    degraded: str = ""
    question: str = ""  # of a follow-up its own words alone; empty: the query is the question

    @property
    def sources(self) -> tuple[Source, ...]:
        """The snippets in the context, best first."""
        return sources_of(packed.hit for packed in self.packed if packed.is_used)


def sources_of(hits: Iterable[RetrievedSnippet]) -> tuple[Source, ...]:
    """Return where the hits come from, best first; what several share is named once."""
    ranked = sorted(hits, key=lambda hit: hit.rank)
    first = {(_named(hit), hit.address): hit.rank for hit in reversed(ranked)}
    return tuple(sorted((Source(rank, *place) for place, rank in first.items()), key=lambda source: source.rank))


def _named(hit: RetrievedSnippet) -> str:
    """Return the title, with the name of the file where that says more than an address would."""
    is_of_file = hit.uri and not hit.address
    return f"{hit.title} ({hit.uri})".strip() if is_of_file else hit.title


def get_context(
    model: MLModel,
    question: str,
    earlier_questions: Sequence[str] = (),
    mode: str | None = None,
    rewritten: str = "",
) -> Context:
    """Return the context for a question: retrieved with the earlier ones it follows, or as it was rewritten."""
    if rewritten:
        query, retrieved = rewritten, retrieve(model, rewritten, mode=mode)
    else:
        query, retrieved = _retrieve_in_conversation(model, question, earlier_questions, mode)
    budget, llm = model.max_context_tokens, model.llm
    packed = _within(budget, _pack(retrieved.hits, budget, llm), llm)
    text = _text_of(packed)
    return Context(
        text=text,
        packed=packed,
        tokens=count_tokens(text, llm),
        budget=budget,
        mode=retrieved.mode,
        query=query,
        degraded=retrieved.degraded,
        question=question,
    )


def _retrieve_in_conversation(
    model: MLModel, question: str, earlier_questions: Sequence[str], mode: str | None
) -> tuple[str, Retrieved]:
    """Return what was searched for, and what was found."""
    topic = _topic_of(earlier_questions)
    if not topic:
        return question, retrieve(model, question, mode=mode)
    with_topic = "\n".join([question, *topic])
    in_conversation = retrieve(model, with_topic, mode=mode)
    if _word_count(question) <= FEWEST_WORDS and not NAME.search(question):
        return with_topic, in_conversation
    return with_topic, _together(retrieve(model, question, mode=mode), in_conversation)


def _topic_of(earlier_questions: Sequence[str]) -> list[str]:
    """Return the latest questions, latest first, back to the one that says what they are about."""
    topic = []
    for question in reversed(earlier_questions[-EARLIER_QUESTIONS:]):
        topic.append(question)
        if _word_count(question) > TOPIC_WORDS:
            break
    return topic


def _word_count(question: str) -> int:
    """Return how many words carry the question; in eleven languages what holds it together is none of them."""
    return sum(not term.startswith(EXACT_MARK) for term in question_terms(question))


def _together(own: Retrieved, in_conversation: Retrieved) -> Retrieved:
    """Return the hits of a question by itself and with the earlier ones, by what both say of each together.

    A vague question finds nothing well by itself, so the conversation decides; one with a subject of its own does.
    """
    found = {hit.id: hit for hit in (*in_conversation.hits, *own.hits)}
    scores = dict.fromkeys(found, 0.0)
    for retrieved, worth in ((own, 1.0), (in_conversation, WORTH_OF_CONVERSATION)):
        for hit in retrieved.hits:
            scores[hit.id] += worth * _score_of(hit)
    ranked = sorted(found.values(), key=lambda hit: (-scores[hit.id], hit.id))
    hits = tuple(replace(hit, rank=rank) for rank, hit in enumerate(ranked, start=1))
    return Retrieved(hits, own.mode, own.degraded or in_conversation.degraded)


def _score_of(hit: RetrievedSnippet) -> float:
    """Return what a hit was ranked by; within one retrieval it is the same for all hits."""
    if hit.fused_score is not None:
        return hit.fused_score
    return hit.bm25 or 0.0 if hit.distance is None else 1 - hit.distance


def _pack(hits: Sequence[RetrievedSnippet], budget: int, llm: str) -> tuple[PackedHit, ...]:
    """Take the hits in rank order, passing over what does not fit; the first is cut if it does not fit by itself."""
    separator_tokens = count_tokens(SEPARATOR, llm)
    packed, left = [], budget
    for hit in hits:
        block = _block_of(hit)
        tokens = count_tokens(block, llm)
        is_cut = not packed and tokens > budget
        if is_cut:
            block = _cut_at_sentence_end(block, budget, llm)
            tokens = count_tokens(block, llm)
        is_used = bool(block) and tokens <= left
        packed.append(PackedHit(hit, is_used, tokens, block, is_cut, tokens_left=max(left, 0)))
        if is_used:
            left -= tokens + separator_tokens
    return tuple(packed)


def _text_of(packed: Sequence[PackedHit]) -> str:
    return SEPARATOR.join(hit.block for hit in packed if hit.is_used)


def _within(budget: int, packed: tuple[PackedHit, ...], llm: str) -> tuple[PackedHit, ...]:
    """Return the hits as packed, fewer if need be: the tokens of a whole may be more than those of its parts."""
    while count_tokens(_text_of(packed), llm) > budget:
        last = max(position for position, hit in enumerate(packed) if hit.is_used)
        packed = (*packed[:last], replace(packed[last], is_used=False), *packed[last + 1 :])
    return packed


def _block_of(hit: RetrievedSnippet) -> str:
    """Return title and text as they stand in the context; a text that opens with its title keeps it once."""
    first_line = hit.text.lstrip().partition("\n")[0]
    if not hit.title or first_line.strip("#* \t") == hit.title.strip():
        return hit.text.strip()
    return f"# {hit.title}\n\n{hit.text.strip()}"


def _cut_at_sentence_end(text: str, budget: int, llm: str) -> str:
    """Return as many whole sentences as fit; where that would lose more than half of the room, whole words."""
    cut = truncate_to_tokens(text, budget, llm)
    ends = [match.end() for match in SENTENCE_END.finditer(cut)]
    if ends and ends[-1] == len(cut) and not text[len(cut) :][:1].isspace():
        ends.pop()  # the text goes on within a number or an abbreviation
    end = ends[-1] if ends and ends[-1] > len(cut) / 2 else cut.rfind(" ")
    return cut[:end].rstrip() if end > 0 else cut
