"""How knowledge came in: imports and the pages they read."""

import time

from django.db import models

from models_app.jobs import Job
from models_app.models import MLModel, TrainingSnippet, is_web_address

MAX_NOTES = 50
URL_LENGTH = 2_000
TITLE_LENGTH = 1_000
REASON_LENGTH = 200
# How often a running import saves what the dialog shows of it; the dialog asks every second or two.
PROGRESS_SECONDS = 0.3


class Import(Job):
    """One run that brings knowledge into a model: from a website, some of its pages, files, or what is stored."""

    class Kind(models.TextChoices):
        SITE = "site", "A website"
        PAGES = "pages", "Single pages"
        FILES = "files", "Files"
        STORED = "stored", "The stored pages, split anew"

    class Phase(models.TextChoices):
        READING = "reading", "Reading pages"
        SPLITTING = "splitting", "Making snippets"
        EMBEDDING = "embedding", "Making vectors"

    model = models.ForeignKey(MLModel, on_delete=models.CASCADE, related_name="imports")
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.SITE)
    address = models.CharField(max_length=URL_LENGTH, help_text="The start address as it was typed, or what it reads.")
    addresses = models.JSONField(default=list, blank=True, help_text="Of single pages: their addresses as typed.")
    start_url = models.CharField(max_length=URL_LENGTH, blank=True, help_text="Where its redirects end.")
    scope = models.CharField(max_length=URL_LENGTH, blank=True, help_text="The part of the site that was crawled.")
    max_pages = models.PositiveIntegerField()
    delay_seconds = models.FloatField(default=0)
    include_paths = models.TextField(blank=True, help_text="Patterns, one a line; empty reads all of the site.")
    exclude_paths = models.TextField(blank=True, help_text="Patterns, one a line, of what is not read.")
    max_depth = models.PositiveIntegerField(null=True, blank=True, help_text="Links away from the start.")
    import_images = models.BooleanField(default=True)
    insert_source_url = models.BooleanField(default=False)
    imports_documents = models.BooleanField(default=False, help_text="Also PDF and Office files that pages link to.")
    renders_scripts = models.BooleanField(default=False, help_text="Pages that are empty without scripts are drawn.")
    is_scheduled = models.BooleanField(default=False, help_text="Started by the model's schedule.")
    phase = models.CharField(max_length=10, choices=Phase.choices, default=Phase.READING)
    done_count = models.PositiveIntegerField(default=0, help_text="Steps of the phase that are done.")
    total_count = models.PositiveIntegerField(default=0, help_text="Steps of the phase known so far.")
    notes = models.JSONField(default=list, help_text="What a person should know: odd sitemaps, limits reached.")

    changes = models.JSONField(default=dict, help_text="What it changed: pages and snippets, counted.")
    usage = models.JSONField(default=dict, help_text="LLM calls and tokens it spent, and those it saved.")

    task_name = "crawler.run_import"
    # What an owner chooses for an import, and the next one of the same site takes over.
    OPTIONS = (
        "max_pages",
        "delay_seconds",
        "include_paths",
        "exclude_paths",
        "max_depth",
        "import_images",
        "insert_source_url",
        "imports_documents",
        "renders_scripts",
    )
    _noted_at = float("-inf")

    class Meta(Job.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["model"],
                condition=models.Q(state__in=Job.OPEN_STATES),
                name="one_open_import_a_model",
            )
        ]

    def __str__(self):
        return f"{self.address} into {self.model}"

    @property
    def unit(self) -> str:
        """What it reads one after another, in a word."""
        return "file" if self.kind == self.Kind.FILES else "page"

    @property
    def steps(self) -> dict[str, str]:
        """Its phases and what each does, in words."""
        return {phase.value: phase.label.replace("page", self.unit) for phase in self.Phase}

    @property
    def step(self) -> str:
        """What it does at present, in words."""
        return self.steps[self.phase]

    @property
    def options(self) -> dict:
        """What was chosen for this import, by field."""
        return {name: getattr(self, name) for name in self.OPTIONS}

    @property
    def is_progress_due(self) -> bool:
        """Whether the progress was last noted so long ago that the dialog wants to know more."""
        return time.monotonic() - self._noted_at > PROGRESS_SECONDS

    def note_progress(self, **fields) -> None:
        """Save what the dialog shows while the import runs; nothing once another worker has taken it."""
        self._noted_at = time.monotonic()
        for name, value in fields.items():
            setattr(self, name, value)
        Import.objects.filter(pk=self.pk, lease=self.lease).update(**fields)

    def add_note(self, text: str) -> None:
        """Add a sentence to the import's report, once."""
        if text not in self.notes and len(self.notes) < MAX_NOTES:
            self.note_progress(notes=[*self.notes, text])

    def pages_by_state(self) -> dict[str, int]:
        """Return how many of its pages are in each state; states without a page are left out."""
        counts = self.pages.order_by("state").values_list("state").annotate(count=models.Count("pk"))
        return dict(counts)


class Page(models.Model):
    """One address met by an import, and what came of it."""

    class State(models.TextChoices):
        FOUND = "found", "Found, not read yet"
        READ = "read", "Read, not split yet"
        DONE = "done", "Imported"
        SAME = "same", "Leads to another page, or has its text"
        SKIPPED = "skipped", "Skipped"
        FAILED = "failed", "Failed"

    class Change(models.TextChoices):
        """What the page is against what the model knew before."""

        UNKNOWN = "", "Not compared"
        NEW = "new", "New"
        CHANGED = "changed", "Changed"
        SAME = "same", "Unchanged"
        GONE = "gone", "Gone"

    job = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="pages")
    url = models.CharField(max_length=URL_LENGTH)
    final_url = models.CharField(
        max_length=URL_LENGTH, blank=True, help_text="The address its text is stored under: its own, or another page's."
    )
    depth = models.PositiveIntegerField(default=0, help_text="How many links it is away from the start.")
    state = models.CharField(max_length=10, choices=State.choices, default=State.FOUND)
    reason = models.CharField(max_length=REASON_LENGTH, blank=True, help_text="Why it was skipped or failed, in short.")
    change = models.CharField(max_length=10, choices=Change.choices, default=Change.UNKNOWN, blank=True)
    kind = models.CharField(max_length=10, default="html", help_text="html, or the kind of document it is.")
    etag = models.CharField(max_length=200, blank=True)
    last_modified = models.CharField(max_length=100, blank=True)
    source = models.BinaryField(default=bytes, help_text="The HTML as it was read, compressed by zlib.")
    title = models.CharField(max_length=TITLE_LENGTH, blank=True)
    word_count = models.PositiveIntegerField(default=0, help_text="Words of its own text.")
    markdown = models.TextField(blank=True)
    landmarks = models.JSONField(default=list, help_text="Markdown of what the author marked as not the page's own.")
    content_hash = models.CharField(max_length=64, blank=True, help_text="Of its title, words and link targets.")
    split_hash = models.CharField(max_length=64, blank=True, help_text="Of all that its snippets were made from.")
    snippet_count = models.PositiveIntegerField(default=0, help_text="Of a failed page: its old snippets still stand.")
    plan = models.JSONField(default=list, help_text="How the LLM sorted its parts: titles, and hashes of the parts.")
    report = models.JSONField(default=dict, help_text="How it was selected and split, and what to look at.")

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["job", "url"], name="a_page_once_an_import")]
        indexes = [models.Index(fields=["job", "state"]), models.Index(fields=["job", "content_hash"])]

    def __str__(self):
        return self.url

    @property
    def snippet_source(self) -> str:
        """What its snippets say of where they come from: a file's name is no address, so that no crawl retires them."""
        return TrainingSnippet.Source.CRAWL if is_web_address(self.url) else TrainingSnippet.Source.UPLOAD

    def note_failure(self, reason: str, message: str) -> None:
        """Record why the page was not imported; what an earlier import made of it stands."""
        self.snippet_count = TrainingSnippet.objects.filter(
            model=self.job.model_id, uri=self.url, source=self.snippet_source
        ).count()
        self.end(self.State.FAILED, reason, message)

    def end(self, state: "Page.State", reason: str, message: str) -> None:
        """Record that the page has no text of its own to import, and why."""
        self.state, self.reason = state, reason[:REASON_LENGTH]
        self.report["message"] = message
        self.save()


class Upload(models.Model):
    """A file on its way in: kept until the import that reads it has ended, or the preview is a day old."""

    model = models.ForeignKey(MLModel, on_delete=models.CASCADE, related_name="uploads")
    job = models.ForeignKey(Import, on_delete=models.CASCADE, null=True, related_name="uploads")
    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=10, help_text="pdf, docx, pptx, xlsx, html, markdown, text, csv, json or yaml.")
    body = models.BinaryField()
    options = models.JSONField(default=dict, help_text="Of rows: the columns of title, text and address.")
    report = models.JSONField(default=dict, help_text="What the preview found: counts, columns, warnings.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]

    def __str__(self):
        return self.name
