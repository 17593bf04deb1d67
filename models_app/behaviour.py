"""The Behaviour dialog's form: every knob of a model with its meaning, in sections, and who may turn which."""

from collections.abc import Iterator
from dataclasses import dataclass

from django import forms
from django.core.exceptions import ValidationError

from models_app.embedder import space_of
from models_app.forms import read_website
from models_app.models import LOCAL_EMBEDDING, MLModel
from models_app.questionnaire import QuestionnaireRefused, refuse_bad_questionnaire
from models_app.switching import keep_answering, settle
from tenants.addresses import AddressRefused, provider_policy, refuse_url
from tenants.models import Role
from tenants.secrets import SecretLost
from tenants.store import tenant_atomic

SECTIONS = {
    "General": ["name", "slug"],
    "Retrieval": ["retrieval", "threshold", "max_context_tokens", "embedding_model"],
    "Answers": ["system_instruction", "llm", "fallback_llms", "temperature", "max_tokens", "context_window", "guard"],
    "Conversation": [
        "max_request_tokens",
        "max_session_items",
        "session_timeout_seconds",
        "rewrites_follow_ups",
        "compresses_history",
    ],
    "Widget": ["greeting", "conversation_starters", "questionnaire", "takes_emails", "wants_proof_of_work"],
    "Import": ["website", "recrawl_days", "import_images", "insert_source_url", "splitter_llm"],
    "Provider": ["provider_base_url", "provider_key", "forgets_provider_key"],
    "Log and limits": [
        "logs_questions",
        "monthly_request_cap",
        "requests_a_minute",
        "input_price",
        "output_price",
        "embedding_price",
    ],
}
OWNERS_FIELDS = SECTIONS["Provider"]
PROVIDERS_NAMES = ("llm", "fallback_llms", "splitter_llm", "embedding_model")
NEEDS_A_PROVIDER = "A name needs your own provider: set its base URL below, or leave this empty for the installation's."

MOST_STARTERS = 6
LONGEST_STARTER = 150

MEANINGS = {
    "name": "As your team sees it.",
    "slug": "The model's name in addresses and in the API: programs that call the old one must be changed.",
    "retrieval": "How snippets are found. Semantic goes by meaning, Keyword by words, Hybrid fuses both rankings. "
    "Keyword needs no vectors.",
    "threshold": "0 to 1: how close in meaning a snippet must be, where 0 is an unrelated text and 1 the same one, "
    "under every embedding model. Hybrid also keeps by words: what scores at least threshold × the best hit and, where "
    "nothing is close in meaning, has 2 × threshold of the question's words, rare ones weighing more.",
    "max_context_tokens": "The budget of snippets for one answer. Pages above 80% of it are split when imported: "
    "change it and import again for finer or coarser snippets.",
    "embedding_model": f"Makes the vectors. Empty: the installation's ({LOCAL_EMBEDDING} unless the operator set "
    "another). A name of another one needs your own provider's base URL below. "
    "After a change you are asked to make all vectors anew; until the last is made, the old ones answer.",
    "system_instruction": "Who the chatbot is and how it should answer. Sent first with each question.",
    "llm": "The chat model's name at your own provider, such as gpt-4o-mini; it needs the provider's base URL below. "
    "Empty: the installation's; where there is none, the best passages are quoted instead.",
    "fallback_llms": "Names of further LLMs at the same provider, one a line. Where the chat LLM is away, over its "
    "budget or silent for too long they are asked in turn, then the installation's; then the best passages are quoted.",
    "guard": "Each number, price, date, phone, e-mail and URL of an answer is looked up in the snippets it was given "
    "and in what you and the visitor have said. One that stands nowhere is flagged in History. It may also be named "
    "below the answer; or the LLM is asked once more without it, where nothing is shown before the whole. A streamed "
    "answer is only marked then. A total that the LLM computed is flagged, too.",
    "temperature": "0 to 2: how freely the LLM words its answers. 0 is the most literal.",
    "max_tokens": "The longest answer.",
    "context_window": "The most tokens the LLM holds, question and answer together. Empty: by its name, else 8,192.",
    "max_request_tokens": "The longest question. A longer one is refused with a message that names both numbers.",
    "max_session_items": "Conversation messages kept before the oldest are left out.",
    "session_timeout_seconds": "Seconds of silence after which a conversation is forgotten.",
    "rewrites_follow_ups": "The splitter LLM words each follow-up anew so that it can be searched by itself, within 3 "
    "seconds. Off, or when it does not answer: the earlier questions are searched with.",
    "compresses_history": "The splitter LLM sums up what Max session items has no room for, and the chat LLM is told "
    "the summary instead. Off: it is forgotten.",
    "greeting": "What the widget says first. Empty: nothing.",
    "conversation_starters": f"Questions a visitor can press instead of typing, one a line, at most {MOST_STARTERS}.",
    "questionnaire": "What a visitor is asked before the chat, one question a line. Lines below it that begin with "
    "“- ” are its choices; without any the visitor writes. Each may be skipped. The answers go to the LLM with every "
    "question and stand in History, where they can be erased.",
    "takes_emails": "Where no answer was found, or a visitor is not content, the widget asks for an e-mail address. "
    "You find it in History, under E-mails.",
    "wants_proof_of_work": "Each question through a public key costs the visitor's device about a second, and a "
    "program that asks by the thousand dearly. The visitor has nothing to do; no other company is involved.",
    "website": "The address that Import starts from.",
    "recrawl_days": "Days after which the website is read again by itself. Nothing does so yet: it is kept for a "
    "later version, and until then you press Import.",
    "import_images": "Imported snippets keep their images, as Markdown with absolute addresses.",
    "insert_source_url": "The page's address is added to each imported snippet's text, as a citation; it counts in the "
    "budget.",
    "splitter_llm": "A fast, cheap LLM of your own provider that splits long pages by subject. Empty: the chat LLM, or "
    "the installation's; where there is none, headings split the page.",
    "provider_base_url": "Any service that speaks OpenAI's API, such as https://api.openai.com/v1. Empty: the "
    "installation's. Used for the LLMs above and the embedding model.",
    "provider_key": "Stored encrypted and never shown again. Leave empty to keep the one that is set.",
    "forgets_provider_key": "Removes the stored key when you save, also the one that is kept for the vectors of the "
    "provider you have left, which then answer no more.",
    "logs_questions": "Keeps questions and answers in History. Off: nothing of them is stored.",
    "monthly_request_cap": "Questions this model answers in a calendar month. Empty: as many as the workspace may ask.",
    "requests_a_minute": "Questions it takes through the API in a minute, from all keys and visitors together; more "
    "are refused with the time to wait. Empty: as many as come.",
    "input_price": "What the provider charges for a million tokens sent. With both prices set, History shows the cost.",
    "output_price": "What it charges for a million tokens written.",
    "embedding_price": "What it charges for a million tokens embedded. With it set, Vectorise says what it costs.",
}
LABELS = {
    "llm": "Chat LLM",
    "splitter_llm": "Splitter LLM",
    "fallback_llms": "Further LLMs",
    "guard": "Facts that stand in no source",
    "rewrites_follow_ups": "Reword follow-ups",
    "compresses_history": "Sum up long conversations",
    "provider_base_url": "Provider base URL",
    "provider_key": "Provider key",
    "forgets_provider_key": "Forget the stored key",
    "session_timeout_seconds": "Session timeout (seconds)",
    "recrawl_days": "Re-crawl every (days)",
    "import_images": "Import images",
    "insert_source_url": "Insert source URL",
    "takes_emails": "Ask for an e-mail",
    "wants_proof_of_work": "Ask for proof of work",
    "logs_questions": "Log questions",
    "input_price": "Price per million input tokens",
    "output_price": "Price per million output tokens",
    "embedding_price": "Price per million embedded tokens",
}
STEPS = {"threshold": "0.01", "temperature": "0.1"}


@dataclass(frozen=True)
class Section:
    """A heading of the dialog and the bound fields below it."""

    title: str
    fields: tuple[forms.BoundField, ...]

    @property
    def has_errors(self) -> bool:
        return any(field.errors for field in self.fields)


class BehaviourForm(forms.ModelForm):
    """All settings of a model. Fields the role may not change are shown, and what is sent for them is ignored."""

    provider_base_url = forms.URLField(max_length=300, required=False, assume_scheme="https")
    # What was typed is shown again after a refusal; the stored key never reaches the form.
    provider_key = forms.CharField(
        max_length=500,
        required=False,
        widget=forms.PasswordInput(render_value=True, attrs={"autocomplete": "new-password", "spellcheck": "false"}),
    )
    forgets_provider_key = forms.BooleanField(required=False)

    class Meta:
        model = MLModel
        fields = [
            name
            for names in SECTIONS.values()
            for name in names
            if name not in ("provider_key", "forgets_provider_key")
        ]
        widgets = {
            "system_instruction": forms.Textarea(attrs={"rows": 5}),
            "fallback_llms": forms.Textarea(attrs={"rows": 2}),
            "guard": forms.RadioSelect,
            "conversation_starters": forms.Textarea(attrs={"rows": 3}),
            "questionnaire": forms.Textarea(attrs={"rows": 6}),
            "website": forms.TextInput(attrs={"inputmode": "url"}),
            "retrieval": forms.RadioSelect,
        }

    def __init__(self, role: Role, *arguments, **options):
        super().__init__(*arguments, **options)
        for name, field in self.fields.items():
            field.help_text = MEANINGS[name]
            field.label = LABELS.get(name, field.label)
            field.disabled = not role.may_edit or (name in OWNERS_FIELDS and not role.may_own)
            if name in STEPS:
                field.widget.attrs["step"] = STEPS[name]
        self._old_provider_host = self.instance.provider_host

    @property
    def sections(self) -> Iterator[Section]:
        for title, names in SECTIONS.items():
            yield Section(title, tuple(self[name] for name in names))

    @property
    def key_state(self) -> str:
        """What is known of the stored provider key: "set", "not set" or "lost"."""
        try:
            return "set" if self.instance.provider_key else "not set"
        except SecretLost:
            return "lost"

    def clean_slug(self):
        slug = self.cleaned_data["slug"]
        if MLModel.objects.filter(slug=slug).exclude(pk=self.instance.pk).exists():
            raise ValidationError(f"There is a model “{slug}” already.")
        return slug

    def clean_conversation_starters(self):
        lines = [line.strip() for line in self.cleaned_data["conversation_starters"].splitlines() if line.strip()]
        if len(lines) > MOST_STARTERS:
            raise ValidationError(f"These are {len(lines)} questions; at most {MOST_STARTERS} are offered.")
        if any(len(line) > LONGEST_STARTER for line in lines):
            raise ValidationError(f"A question to press has at most {LONGEST_STARTER} characters.")
        return "\n".join(lines)

    def clean_questionnaire(self):
        text = self.cleaned_data["questionnaire"]
        try:
            refuse_bad_questionnaire(text)
        except QuestionnaireRefused as error:
            raise ValidationError(str(error)) from error
        return text

    def clean_website(self):
        return read_website(self.cleaned_data["website"])

    def clean_provider_base_url(self):
        url = self.cleaned_data["provider_base_url"].rstrip("/")
        if url and url != self.initial.get("provider_base_url"):
            try:
                refuse_url(url, provider_policy(), look_up=True)
            except AddressRefused as error:
                raise ValidationError(f"This address cannot be used: {error}") from error
        return url

    def clean(self):
        cleaned = super().clean()
        if "provider_base_url" in cleaned and not cleaned["provider_base_url"]:
            for name in PROVIDERS_NAMES:
                if cleaned.get(name) and (name, cleaned[name]) != ("embedding_model", LOCAL_EMBEDDING):
                    self.add_error(name, NEEDS_A_PROVIDER)
        return cleaned

    def clean_provider_key(self):
        key = self.cleaned_data["provider_key"].strip()
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise ValidationError("A key has only letters, digits and signs, and no blanks: copy it once more.")
        return key

    def _post_clean(self):
        super()._post_clean()
        moved = self.instance.provider_host and self.instance.provider_host != self._old_provider_host
        cleaned = self.cleaned_data
        if (
            moved
            and self.key_state == "set"
            and not cleaned.get("provider_key")
            and not cleaned.get("forgets_provider_key")
        ):
            self.add_error("provider_key", "The stored key belongs to the provider's old address: enter the new one's.")

    def save(self):
        forgets = self.cleaned_data["forgets_provider_key"]
        with tenant_atomic():
            old = MLModel.objects.get(pk=self.instance.pk)
            if self.cleaned_data["provider_key"] and not forgets:
                self.instance.provider_key = self.cleaned_data["provider_key"]
            elif forgets or (old.provider_base_url and not self.instance.provider_base_url):
                self.instance.provider_key = ""
            kept = keep_answering(old, self.instance, forgets)
            # Only what was changed is written: two people who save at once undo nothing of each other's.
            columns = [*self._changed_columns(), "provider_key_encrypted", *kept]
            self.instance.save(update_fields=columns)
        if space_of(self.instance) != space_of(old):
            settle(self.instance)
        return self.instance

    def _changed_columns(self) -> list[str]:
        return [name for name in self.changed_data if name in self._meta.fields]
