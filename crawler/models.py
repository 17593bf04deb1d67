"""How knowledge came in: imports and the pages they read."""

from django.db import models

from models_app.jobs import Job
from models_app.models import MLModel


class Import(Job):
    """One crawl of a website into a model."""

    class Phase(models.TextChoices):
        READING = "reading", "Reading pages"
        SPLITTING = "splitting", "Making snippets"
        EMBEDDING = "embedding", "Making vectors"

    model = models.ForeignKey(MLModel, on_delete=models.CASCADE, related_name="imports")
    address = models.CharField(max_length=2_000, help_text="The start address as it was typed.")
    start_url = models.CharField(max_length=2_000, blank=True, help_text="Where its redirects end.")
    scope = models.CharField(max_length=2_000, blank=True, help_text="The part of the site that was crawled.")
    max_pages = models.PositiveIntegerField()
    delay_seconds = models.FloatField(default=0)
    import_images = models.BooleanField(default=True)
    insert_source_url = models.BooleanField(default=False)
    phase = models.CharField(max_length=10, choices=Phase.choices, default=Phase.READING)
    done_count = models.PositiveIntegerField(default=0, help_text="Steps of the phase that are done.")
    total_count = models.PositiveIntegerField(default=0, help_text="Steps of the phase known so far.")
    notes = models.JSONField(
        default=list, help_text="What a person should know: odd sitemaps, limits reached."
    )

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


class Page(models.Model):
    """One address met by an import, and what came of it."""

    class State(models.TextChoices):
        FOUND = "found", "Found, not read yet"
        READ = "read", "Read, not split yet"
        DONE = "done", "Imported"
        SAME = "same", "Same text as another page"
        SKIPPED = "skipped", "Skipped"
        FAILED = "failed", "Failed"

    job = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="pages")
    url = models.CharField(max_length=2_000)
    final_url = models.CharField(
        max_length=2_000, blank=True, help_text="After redirects: where it is stored."
    )
    depth = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=10, choices=State.choices, default=State.FOUND)
    reason = models.CharField(max_length=200, blank=True, help_text="Why it was skipped or failed.")
    title = models.CharField(max_length=1_000, blank=True)
    markdown = models.TextField(blank=True)
    landmarks = models.JSONField(
        default=list, help_text="Markdown of what the author marked as not the page's own."
    )
    content_hash = models.CharField(max_length=64, blank=True)
    snippet_count = models.PositiveIntegerField(default=0)
    report = models.JSONField(default=dict, help_text="How it was selected and split, and what to look at.")

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["job", "url"], name="a_page_once_an_import")]
        indexes = [models.Index(fields=["job", "state"]), models.Index(fields=["job", "content_hash"])]

    def __str__(self):
        return self.url
