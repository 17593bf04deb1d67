"""Where a model's LLMs are: the one that answers, those that answer while it is away, and the one that splits pages."""

from dataclasses import dataclass, field, replace

from django.conf import settings

from models_app.models import MLModel
from models_app.provider_errors import LLMError, ProviderError, Reason
from models_app.tokens import context_window_of
from tenants.addresses import AddressPolicy, operators_policy, provider_policy
from tenants.secrets import SecretLost

UNNAMED_LLM = "default"  # servers of a single LLM ignore its name


@dataclass(frozen=True)
class Provider:
    """Where an LLM is, how much it holds, and what may be reached for it."""

    base_url: str
    key: str = field(repr=False)
    llm: str
    context_window: int
    policy: AddressPolicy = field(default_factory=provider_policy, repr=False)


def chat_provider(model: MLModel) -> Provider | None:
    """Return the LLM that answers for the model, or None when no LLM is set; raises LLMError for a lost key.

    A tenant's own provider counts once an LLM of it is named: it may have been set for embeddings alone. An LLM that is
    named without a provider is not asked for: the operator pays, and chooses.
    """
    return _provider(model, model.llm, settings.SITEWISE_LLM_MODEL)


def splitter_provider(model: MLModel) -> Provider | None:
    """Return the cheap LLM that splits pages, or the one that answers where none is set: the model's or operator's."""
    return _provider(
        model, model.splitter_llm or model.llm, settings.SITEWISE_SPLITTER_MODEL or settings.SITEWISE_LLM_MODEL
    )


def _provider(model: MLModel, own_llm: str, operators_llm: str) -> Provider | None:
    """Return the tenant's own provider, else the operator's. A key never goes to the other one's address."""
    if model.provider_base_url and own_llm:
        url, key, llm, policy = model.provider_base_url, own_key(model, LLMError), own_llm, provider_policy()
        return Provider(url, key, llm, model.context_window or context_window_of(llm), policy)
    return operators_provider(operators_llm, model.context_window)


def operators_provider(llm: str, context_window: int | None = None) -> Provider | None:
    """Return the installation's LLM of this name, or None where no address is set."""
    if not settings.SITEWISE_LLM_URL:
        return None
    llm = llm or UNNAMED_LLM
    window = context_window or context_window_of(llm)
    return Provider(settings.SITEWISE_LLM_URL, settings.SITEWISE_LLM_KEY, llm, window, operators_policy())


def own_key(model: MLModel, error_class: type[ProviderError]) -> str:
    """Return the tenant's own provider key; raises error_class when it has to be entered again."""
    try:
        return model.provider_key
    except SecretLost:
        message = "The provider's key can no longer be read: enter it again under Behaviour."
        raise error_class(Reason.LOST_KEY, message) from None


def answering_providers(model: MLModel) -> tuple[list[Provider], str]:
    """Return the LLMs in the order in which they are asked, and why the model's own cannot be (empty: they can).

    None when no LLM is set. The context window that the owner gave is the first one's.
    """
    operators = operators_provider(settings.SITEWISE_LLM_MODEL)
    try:
        first = chat_provider(model)
    except LLMError as error:
        return [operators] if operators else [], error.message
    if first is None:
        return [], ""
    if not (model.provider_base_url and model.llm):
        return [first], ""
    names = [name for name in fallback_names(model) if name != first.llm]
    others = [replace(first, llm=name, context_window=context_window_of(name)) for name in names]
    return [first, *others, *([operators] if operators else [])], ""


def fallback_names(model: MLModel) -> list[str]:
    """Return the names of the model's further LLMs, each once."""
    return list(dict.fromkeys(filter(None, map(str.strip, model.fallback_llms.splitlines()))))
