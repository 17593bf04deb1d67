"""One turn from its question to its last word: what may be asked, what it cost, and what of it is logged."""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID, uuid4

from django.db.models import F, Sum

from chat.context import Context, PackedHit, Source
from chat.guard import Flag, note_of
from chat.models import QuestionCount, Turn
from chat.sessions import Exchange, Memory, Said, recall, remember
from models_app.llm import Ending
from models_app.models import Guard, MLModel
from models_app.tokens import count_tokens
from tenants.store import StoreDiskFails, tenant_atomic

logger = logging.getLogger(__name__)

MILLION = Decimal(1_000_000)
ANSWERED = (Turn.Outcome.STOP, Turn.Outcome.LENGTH, Turn.Outcome.CUT)
CUT_NOTE = "\n\n*The answer breaks off here: the connection to the language model was lost. Please ask once more.*"
DEGRADED_LENGTH = Turn._meta.get_field("degraded").max_length


FIELDS_AT_THE_END = (
    "answer",
    "answered_by",
    "outcome",
    "error",
    "llm",
    "is_unanswered",
    "degraded",
    "searched_for",
    "guard_flags",
    "retrieval",
    "hits",
    "context_tokens",
    "prompt_tokens",
    "completion_tokens",
    "cost",
    "seconds",
)


class QuestionTooLong(Exception):
    """The question has more tokens than Max request tokens allows."""

    def __init__(self, tokens: int, limit: int):
        super().__init__(f"The question has {tokens:,} tokens; this model takes at most {limit:,}.")
        self.tokens, self.limit = tokens, limit


class QuotaReached(Exception):
    """As many questions as are allowed in a calendar month have been asked."""

    def __init__(self, what: str, limit: int):
        super().__init__(f"This {what} has answered the {limit:,} questions it may answer in a month.")
        self.limit = limit


@dataclass(frozen=True)
class Asked:
    """One question as it came in at an edge: API, widget, test page, command."""

    model: MLModel
    question: str
    history: tuple[Exchange, ...] = ()  # sent by the client; not looked at when there is a session
    session_key: str = ""
    channel: str = "api"
    question_quota: int | None = None  # the tenant's, for a calendar month
    max_tokens: int | None = None  # only ever lowers the model's own
    temperature: float | None = None
    visitor: str = ""  # tenants.visitors.visitor_hash
    turn_id: UUID = field(default_factory=uuid4)  # what the client will know the answer by
    is_buffered: bool = (
        False  # nobody sees a piece before the whole: then a second answer may take the first one's place
    )


@dataclass(frozen=True)
class Answered:
    """The end of a turn that was answered."""

    text: str
    answered_by: str  # "llm" or "extract"
    finish_reason: str
    sources: tuple[Source, ...]
    is_unanswered: bool
    degraded: str
    context_tokens: int
    prompt_tokens: int
    completion_tokens: int
    session_key: str
    passages: tuple[PackedHit, ...] = ()  # what it may stand on, as the context held it
    unsupported: tuple[Flag, ...] = ()  # facts that stand in no source
    offers_contact: bool = False  # nothing was found, and the model takes e-mail addresses
    is_cut: bool = False  # the LLM broke off


class OpenTurn:
    """A turn while it runs. What is not said to have happened did not: until then it counts as left by the visitor."""

    def __init__(self, asked: Asked, memory: Memory, row_id: int | None):
        self.asked, self.memory = asked, memory
        self.context: Context | None = None
        self._row_id = row_id
        self._began = time.monotonic()
        self._log = Turn(outcome=Turn.Outcome.DISCONNECTED)
        self._pieces: list[str] = []
        self._missed: list[str] = []
        self._left_out = 0
        self._answer = ""  # as far as it is the LLM's or the site's
        self.note = ""  # of our own, below it

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def found(self, context: Context) -> None:
        """Note what the answer may stand on."""
        self.context = context
        self._log.retrieval, self._log.context_tokens = context.mode, context.tokens
        self._log.searched_for = context.query if context.query != self.asked.question else ""
        self.misses(context.degraded)
        self._log.is_unanswered = not context.text
        self._log.hits = [_logged(packed) for packed in context.packed if packed.is_used]

    def is_answered_by(self, whom: Turn.AnsweredBy, llm: str = "") -> None:
        self._log.answered_by, self._log.llm = whom, llm

    def misses(self, what: str) -> None:
        """Note in a sentence what was away, or what took its place; nothing for an empty one."""
        self._missed += [what] if what else []
        self._log.degraded = " ".join(self._missed)[:DEGRADED_LENGTH]

    def leaves_out(self, exchanges: int) -> None:
        """Note how many of the oldest exchanges did not fit the LLM's context window."""
        self._left_out = exchanges

    def start_over(self) -> None:
        """Forget the pieces, which nobody has seen."""
        self._pieces = []

    def is_left_unanswered(self) -> None:
        """Note that nothing of what was found answers the question."""
        self._log.is_unanswered = True

    def add(self, text: str) -> None:
        """Note a piece that was sent to the client."""
        self._pieces.append(text)

    def finish(
        self, ending: Ending, prompt_tokens: int, sources: tuple[Source, ...], flags: Sequence[Flag] = ()
    ) -> Answered:
        """Note that the answer is whole; tokens the server did not count are counted here, as this LLM would."""
        log = self._log
        self._pieces, self._answer = [ending.text], ending.text
        log.outcome = Turn.Outcome.LENGTH if ending.finish_reason == "length" else Turn.Outcome.STOP
        log.prompt_tokens = prompt_tokens if ending.prompt_tokens is None else ending.prompt_tokens
        log.completion_tokens = ending.completion_tokens
        if log.completion_tokens is None:
            log.completion_tokens = count_tokens(ending.text, log.llm)
        if log.answered_by == Turn.AnsweredBy.LLM:
            log.cost = _cost(self.asked.model, log)
        if ending.finish_reason == "content_filter":
            log.error = "content filter: the provider ended the answer."
        if flags and self.asked.model.guard != Guard.FLAG:
            self.note = note_of(flags)
        return self._answered(ending.finish_reason, sources, flags)

    def break_off(self, error: str, sources: tuple[Source, ...], flags: Sequence[Flag]) -> Answered:
        """Note that the LLM broke off after the visitor had seen something of its answer, which stands as it is."""
        log = self._log
        self._answer, self.note = self.text, CUT_NOTE
        log.outcome, log.error = Turn.Outcome.CUT, error
        log.completion_tokens = count_tokens(self.text, log.llm)
        return self._answered("length", sources, flags)

    def _answered(self, finish_reason: str, sources: tuple[Source, ...], flags: Sequence[Flag]) -> Answered:
        log, asked = self._log, self.asked
        log.guard_flags = [flag.row for flag in flags]
        return Answered(
            text=f"{self._answer}{self.note}",
            answered_by=log.answered_by,
            finish_reason=finish_reason,
            sources=sources,
            is_unanswered=log.is_unanswered,
            degraded=log.degraded,
            context_tokens=self.context.tokens,
            prompt_tokens=log.prompt_tokens,
            completion_tokens=log.completion_tokens,
            session_key=asked.session_key,
            passages=tuple(packed for packed in self.context.packed if packed.is_used),
            unsupported=tuple(flags),
            offers_contact=log.is_unanswered and asked.model.takes_emails,
            is_cut=log.outcome == Turn.Outcome.CUT,
        )

    def fail(self, error: str) -> None:
        """Note why there is no whole answer."""
        self._log.outcome, self._log.error = Turn.Outcome.ERROR, error

    def close(self, now: datetime) -> None:
        """Write down how the turn ended, and let the session remember it if it was answered."""
        log, asked = self._log, self.asked
        log.answer, log.seconds = self.text, round(time.monotonic() - self._began, 3)
        if not log.answer:
            log.answered_by, log.llm = Turn.AnsweredBy.NOBODY, ""
        with _answering_all_the_same(), tenant_atomic():
            if self._row_id is not None:
                Turn.objects.filter(pk=self._row_id).update(**{name: getattr(log, name) for name in FIELDS_AT_THE_END})
            if asked.session_key and log.outcome in ANSWERED:
                doubted = [flag["text"] for flag in log.guard_flags]
                said = Said(Exchange(asked.question, self._answer), doubted, self._left_out)
                remember(asked.model, asked.session_key, said, now)


def open_turn(asked: Asked, now: datetime) -> OpenTurn:
    """Count the question and put it into the log; raises QuestionTooLong, QuotaReached, which count and log nothing.

    The row says that the visitor left until the turn is closed: it stays true if this process is killed.
    """
    refuse_long_question(asked.model, asked.question)
    row_id = None
    with _answering_all_the_same(), tenant_atomic():
        _count(asked, now.date().replace(day=1))
        if asked.model.logs_questions:
            row = Turn.objects.create(
                model=asked.model,
                session_key=asked.session_key,
                channel=asked.channel,
                question=asked.question,
                visitor=asked.visitor,
                public_id=asked.turn_id,
            )
            row_id = row.pk
    memory = recall(asked.model, asked.session_key, now) if asked.session_key else Memory(asked.history)
    return OpenTurn(asked, memory, row_id)


@contextmanager
def _answering_all_the_same() -> Iterator[None]:
    """Do without what the block writes where the disk is full or read-only: the visitor gets the answer."""
    try:
        yield
    except StoreDiskFails as error:
        logger.error("A question is answered, but neither counted nor logged nor remembered. %s", error)


def refuse_long_question(model: MLModel, question: str) -> None:
    """Raise QuestionTooLong for a question over the model's Max request tokens."""
    tokens = count_tokens(question, model.llm)
    if tokens > model.max_request_tokens:
        raise QuestionTooLong(tokens, model.max_request_tokens)


def _count(asked: Asked, month: date) -> None:
    model, quota = asked.model, asked.question_quota
    counts = QuestionCount.objects.filter(month=month)
    if quota is not None and (counts.aggregate(total=Sum("count"))["total"] or 0) >= quota:
        raise QuotaReached("workspace", quota)
    own, _ = counts.get_or_create(model=model, month=month)
    if model.monthly_request_cap is not None and own.count >= model.monthly_request_cap:
        raise QuotaReached("chatbot", model.monthly_request_cap)
    QuestionCount.objects.filter(pk=own.pk).update(count=F("count") + 1)


def _cost(model: MLModel, turn: Turn) -> Decimal | None:
    is_priced = not model.llm or turn.llm == model.llm  # the prices are those of the model's own LLM
    if model.input_price is None or model.output_price is None or not is_priced:
        return None
    return (turn.prompt_tokens * model.input_price + turn.completion_tokens * model.output_price) / MILLION


def _logged(packed: PackedHit) -> dict:
    hit = packed.hit
    return {
        "rank": hit.rank,
        "id": hit.id,
        "title": hit.title,
        "uri": hit.uri,
        "text": hit.text,
        "tokens": packed.tokens,
        "keyword_rank": hit.keyword_rank,
        "bm25": hit.bm25,
        "semantic_rank": hit.semantic_rank,
        "distance": hit.distance,
        "fused_score": hit.fused_score,
    }
