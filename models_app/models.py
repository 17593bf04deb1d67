"""What a chatbot knows: its behaviour, its training snippets, and the jobs that make its vectors."""

from urllib.parse import urlsplit

from django.core.validators import MaxValueValidator, MinValueValidator, URLValidator
from django.db import models

from models_app.jobs import Job
from tenants import secrets
from tenants.models import refuse_unprintable

WEB_SCHEMES = ("http://", "https://")
SPLIT_SHARE = 0.8  # of Max context tokens: a page below it is one snippet (product rule)
LOCAL_EMBEDDING = "multilingual-e5-small"


def is_web_address(uri: str) -> bool:
    """Return whether a snippet's uri can be opened; else it is a file's name, and must not become a link."""
    return uri.lower().startswith(WEB_SCHEMES)


class Retrieval(models.TextChoices):
    SEMANTIC = "semantic", "Semantic: by meaning (embeddings)"
    KEYWORD = "keyword", "Keyword: by words (BM25)"
    HYBRID = "hybrid", "Hybrid: both, fused"


class Guard(models.TextChoices):
    """What is done about facts of an answer that stand in no source."""

    FLAG = "flag", "Flag them in History"
    MARK = "mark", "Name them below the answer, too"
    RETRY = "retry", "Answer once more; name what is left"


class MLModel(models.Model):
    """One chatbot and its behaviour. The defaults are the product's; every knob is edited in the Behaviour dialog."""

    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=100, validators=[refuse_unprintable])
    created_at = models.DateTimeField(auto_now_add=True)

    retrieval = models.CharField(max_length=10, choices=Retrieval.choices, default=Retrieval.SEMANTIC)
    threshold = models.FloatField(default=0.3, validators=[MinValueValidator(0), MaxValueValidator(1)])
    max_context_tokens = models.PositiveIntegerField(
        default=2_000, validators=[MinValueValidator(100), MaxValueValidator(200_000)]
    )
    max_tokens = models.PositiveIntegerField(
        default=4_000, validators=[MinValueValidator(16), MaxValueValidator(200_000)]
    )
    max_request_tokens = models.PositiveIntegerField(
        default=1_000, validators=[MinValueValidator(10), MaxValueValidator(100_000)]
    )
    max_session_items = models.PositiveIntegerField(
        default=15, validators=[MinValueValidator(0), MaxValueValidator(1_000)]
    )
    session_timeout_seconds = models.PositiveIntegerField(
        default=1_200, validators=[MinValueValidator(1), MaxValueValidator(2_592_000)]
    )
    import_images = models.BooleanField(default=True)
    insert_source_url = models.BooleanField(default=False)

    system_instruction = models.TextField(
        blank=True,
        default="You answer visitors of a website from the context you are given. "
        "If the context does not hold the answer, say so.",
    )
    llm = models.CharField(max_length=100, blank=True)
    fallback_llms = models.TextField(blank=True, help_text="Names of LLMs of the same provider, one a line.")
    guard = models.CharField(max_length=10, choices=Guard.choices, default=Guard.FLAG)
    rewrites_follow_ups = models.BooleanField(default=False)
    compresses_history = models.BooleanField(default=False)
    temperature = models.FloatField(default=0.2, validators=[MinValueValidator(0), MaxValueValidator(2)])
    splitter_llm = models.CharField(max_length=100, blank=True)
    embedding_model = models.CharField(max_length=100, blank=True)
    provider_base_url = models.URLField(
        max_length=300, blank=True, validators=[URLValidator(schemes=["http", "https"])]
    )
    provider_key_encrypted = models.TextField(blank=True, editable=False)
    context_window = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1_000), MaxValueValidator(10_000_000)]
    )
    input_price = models.DecimalField(
        max_digits=10, decimal_places=4, null=True, blank=True, validators=[MinValueValidator(0)]
    )
    output_price = models.DecimalField(
        max_digits=10, decimal_places=4, null=True, blank=True, validators=[MinValueValidator(0)]
    )
    embedding_price = models.DecimalField(
        max_digits=10, decimal_places=4, null=True, blank=True, validators=[MinValueValidator(0)]
    )
    # Which vectors answer while others are made after a change of the embedding model, and what it takes to embed a
    # question as they were. The provider is kept only where the owner has left it, and only until the switch.
    answering_space = models.CharField(max_length=100, blank=True, editable=False)
    answering_model = models.CharField(max_length=100, blank=True, editable=False)
    answering_base_url = models.CharField(max_length=300, blank=True, editable=False)
    answering_key_encrypted = models.TextField(blank=True, editable=False)

    greeting = models.CharField(max_length=500, blank=True)
    conversation_starters = models.TextField(blank=True)
    questionnaire = models.TextField(blank=True)
    takes_emails = models.BooleanField(default=False)
    wants_proof_of_work = models.BooleanField(default=False)
    website = models.CharField(max_length=500, blank=True)
    recrawl_days = models.PositiveIntegerField(null=True, blank=True, validators=[MinValueValidator(1)])
    logs_questions = models.BooleanField(default=True)
    monthly_request_cap = models.PositiveIntegerField(null=True, blank=True, validators=[MinValueValidator(1)])
    requests_a_minute = models.PositiveIntegerField(null=True, blank=True, validators=[MinValueValidator(1)])

    class Meta:
        ordering = ["name", "slug"]

    def __str__(self):
        return self.name

    @property
    def split_threshold(self) -> int:
        """Tokens below which a page is one snippet."""
        return int(self.max_context_tokens * SPLIT_SHARE)

    @property
    def starters(self) -> list[str]:
        """The questions that a visitor can press instead of typing."""
        return [line.strip() for line in self.conversation_starters.splitlines() if line.strip()]

    @property
    def needs_vectors(self) -> bool:
        return self.retrieval != Retrieval.KEYWORD

    @property
    def provider_host(self) -> str:
        return urlsplit(self.provider_base_url).hostname or ""

    @property
    def provider_key(self) -> str:
        """The provider's key in clear; raises secrets.SecretLost when it has to be entered again."""
        return secrets.decrypt(self.provider_key_encrypted)

    @provider_key.setter
    def provider_key(self, key: str) -> None:
        self.provider_key_encrypted = secrets.encrypt(key)


class TrainingSnippet(models.Model):
    """One piece of knowledge: a title (prompt) and a text (completion), from a page or written by the owner."""

    class Source(models.TextChoices):
        CRAWL = "crawl", "From a page"
        SITE = "site", "Said once for the site"
        UPLOAD = "upload", "From a file"
        MANUAL = "manual", "Written by hand"

    class Conflict(models.TextChoices):
        """What became of the text that the owner edited, until the owner has decided."""

        NONE = "", "None"
        CHANGED = "changed", "Its page says something else now"
        GONE = "gone", "Its page does not say it any more"

    model = models.ForeignKey(MLModel, on_delete=models.CASCADE, related_name="snippets")
    prompt = models.CharField(max_length=1_000)
    completion = models.TextField()
    uri = models.CharField(max_length=2_000, blank=True)
    token_count = models.PositiveIntegerField(default=0)
    source = models.CharField(max_length=10, choices=Source.choices, default=Source.MANUAL)
    position = models.PositiveIntegerField(default=0, help_text="Its place on the page, from 0.")
    source_hash = models.CharField(max_length=64, blank=True, help_text="Of the text as it was imported.")
    is_edited = models.BooleanField(default=False, help_text="The owner changed what was imported.")
    source_prompt = models.CharField(max_length=1_000, blank=True, help_text="Its title before the owner's edit.")
    source_completion = models.TextField(blank=True, help_text="Its text before the owner's edit.")
    conflict = models.CharField(max_length=10, choices=Conflict.choices, default=Conflict.NONE, blank=True)
    new_prompt = models.CharField(max_length=1_000, blank=True, help_text="In a conflict: the title its page has now.")
    new_completion = models.TextField(blank=True, help_text="In a conflict: the text its page has now.")
    embedded_in = models.CharField(max_length=100, blank=True, help_text="The embedding space its vector lies in.")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["uri", "position", "id"]
        indexes = [
            models.Index(fields=["model", "uri", "position"]),
            models.Index(fields=["model", "embedded_in"]),
            models.Index(fields=["model", "conflict"]),
        ]

    def __str__(self):
        return self.prompt


class SnippetVersion(models.Model):
    """What a snippet read until it was changed, and by what."""

    class Cause(models.TextChoices):
        EDITED = "edited", "Edited"
        IMPORTED = "imported", "Changed by an import"
        RESOLVED = "resolved", "Decided after its page had changed"
        RESTORED = "restored", "An earlier text was restored"

    snippet = models.ForeignKey(TrainingSnippet, on_delete=models.CASCADE, related_name="versions")
    prompt = models.CharField(max_length=1_000)
    completion = models.TextField()
    cause = models.CharField(max_length=10, choices=Cause.choices, help_text="What replaced this text.")
    author = models.CharField(max_length=254, blank=True, help_text="E-mail of the member; empty for an import.")
    created_at = models.DateTimeField(auto_now_add=True, help_text="When this text was replaced.")

    class Meta:
        ordering = ["-id"]

    def __str__(self):
        return f"{self.prompt} until {self.created_at}"


class DroppedSection(models.Model):
    """A section of a page or file whose snippet the owner deleted: no import brings it again."""

    model = models.ForeignKey(MLModel, on_delete=models.CASCADE, related_name="dropped_sections")
    uri = models.CharField(max_length=2_000)
    source_hash = models.CharField(max_length=64, help_text="Of what its page said.")
    prompt = models.CharField(max_length=1_000, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["model", "uri", "source_hash"], name="a_section_dropped_once"),
        ]

    def __str__(self):
        return self.prompt


class PageText(models.Model):
    """What a page shows its readers, so that a source's link can lead to the very sentence (see page_texts.py)."""

    model = models.ForeignKey(MLModel, on_delete=models.CASCADE, related_name="page_texts")
    uri = models.CharField(max_length=2_000)
    text = models.BinaryField(help_text="A block a line, compressed by zlib.")
    anchors = models.JSONField(default=list, help_text="Headings that have an id: pairs [line, id].")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["model", "uri"], name="a_page_text_once_a_model")]

    def __str__(self):
        return self.uri


class Vectorising(Job):
    """A run that makes the missing embeddings of a model."""

    model = models.ForeignKey(MLModel, on_delete=models.CASCADE, related_name="vectorisings")
    done_count = models.PositiveIntegerField(default=0)
    total_count = models.PositiveIntegerField(default=0)
    space = models.CharField(max_length=100, blank=True, help_text="The embedding space of the vectors it makes.")
    made_count = models.PositiveIntegerField(default=0, help_text="Snippets that it gave their vectors.")
    token_count = models.PositiveBigIntegerField(default=0, help_text="What it sent to the embedding service.")
    worked_seconds = models.FloatField(default=0, help_text="Without what passed while nobody worked on it.")

    task_name = "models_app.vectorise"

    class Meta(Job.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["model"],
                condition=models.Q(state__in=Job.OPEN_STATES),
                name="one_open_vectorising_a_model",
            )
        ]
