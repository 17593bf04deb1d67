"""The LLM that splits the pages of one import: who it is, and when it has failed so often that it is asked no more."""

from django.conf import settings

from crawler.models import Import
from crawler.split import Split
from crawler.split.splitter import Splitter, SplitterRefused
from models_app.jobs import Lease
from models_app.llm import JSON_DEADLINE_ANSWERS, LLMError, Provider, Usage, complete_json
from models_app.providers import splitter_provider

# Pages in a row: with an LLM that hangs each costs minutes, and the next import tries again.
MOST_FAILURES = 3


class ImportLLM:
    """Asks the LLM, if there is one, and counts the pages in a row that it failed."""

    def __init__(self, job: Import, lease: Lease):
        self._job, self._lease = job, lease
        self._failures = 0
        self._provider = self._find_provider()

    @property
    def name(self) -> str:
        """The name of the LLM; "" where there is none."""
        return self._provider.llm if self._provider else ""

    @property
    def splitter(self) -> Splitter | None:
        """What a page is split with."""
        if self._provider is None:
            return None
        seconds = settings.SITEWISE_LLM_TIMEOUT_SECONDS * JSON_DEADLINE_ANSWERS
        return Splitter(self._ask, self._provider.context_window, seconds)

    def note(self, split: Split) -> None:
        """Remember how the LLM did on a page."""
        if split.has_llm_failed:
            self._failures += 1
        elif split.usage.get("calls"):
            self._failures = 0
        if self._failures == MOST_FAILURES:
            self._job.add_note(
                f"The LLM failed on {MOST_FAILURES} pages in a row and was asked no more: other pages were split by "
                f"their headings. The next import asks it again. {split.report}"
            )

    def _find_provider(self) -> Provider | None:
        try:
            return splitter_provider(self._job.model)
        except LLMError as error:
            self._job.add_note(f"Large pages were split by their headings: {error}")
            return None

    def _ask(self, messages: list[dict], schema: dict, answer_tokens: int, seconds_left: float, usage: Usage) -> dict:
        if self._failures >= MOST_FAILURES:
            raise SplitterRefused("it failed on several pages in a row, so this import asks it no more.")
        self._lease.check()
        return complete_json(self._provider, messages, schema, answer_tokens, timeout_seconds=seconds_left, usage=usage)
