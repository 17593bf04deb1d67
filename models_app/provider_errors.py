"""Why a provider of LLMs or embeddings gave no answer, in words fit for anybody to read."""

from enum import StrEnum
from urllib.parse import urlsplit


class Reason(StrEnum):
    """Why a provider gave no answer."""

    TIMEOUT = "timeout"
    REFUSED_KEY = "refused key"
    UNKNOWN_MODEL = "unknown model"
    RATE_LIMITED = "rate limited"
    OVER_BUDGET = "over budget"
    REFUSED_REQUEST = "refused request"
    REFUSED_ADDRESS = "refused address"
    LOST_KEY = "lost key"
    NOT_SET = "not set"
    BROKEN_ANSWER = "broken answer"
    CUT_ANSWER = "cut answer"
    AWAY = "away"


class ProviderError(Exception):
    """A provider gave no answer; the message is fit for anybody to read."""

    def __init__(self, reason: Reason, message: str):
        super().__init__(message)
        self.reason, self.message = reason, message


class LLMError(ProviderError):
    """The LLM gave no answer, or not all of it."""


class NotSpoken(Exception):
    """What answers at a base URL does not speak OpenAI's protocol: a website's page, as a rule, at a wrong address."""

    def __init__(self, base_url: str):
        host = urlsplit(base_url).hostname
        hint = "check the provider's base URL, which usually ends in /v1."
        super().__init__(f"what {host} sent is not of OpenAI's API; {hint}")
