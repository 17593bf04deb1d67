"""Sessions, which remember a conversation for a while, turns, which log it, leads, and counts of questions."""

from uuid import uuid4

from django.db import models

from models_app.models import MLModel


class Session(models.Model):
    """One conversation's memory: earlier questions and answers, and the visitor's answers to the questionnaire."""

    model = models.ForeignKey(MLModel, on_delete=models.CASCADE, related_name="sessions")
    key = models.CharField(max_length=100, default=uuid4, help_text="Chosen by the client, or made here.")
    memory = models.JSONField(default=list, help_text="Pairs [question, answer], oldest first.")
    questionnaire_answers = models.JSONField(default=list, help_text="Pairs [question, answer].")
    summary = models.TextField(blank=True, help_text="What the exchanges said that the memory no longer holds.")
    doubted = models.JSONField(default=list, help_text="Facts of its answers that the guard found in no source.")
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField()

    class Meta:
        ordering = ["-last_used_at"]
        constraints = [models.UniqueConstraint(fields=["model", "key"], name="a_session_key_once_a_model")]

    def __str__(self):
        return self.key


class QuestionCount(models.Model):
    """How many questions a model was asked in a calendar month. Quotas are held against it, as logging may be off."""

    model = models.ForeignKey(MLModel, on_delete=models.SET_NULL, null=True, related_name="question_counts")
    month = models.DateField(help_text="Its first day.")
    count = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-month"]
        constraints = [models.UniqueConstraint(fields=["model", "month"], name="one_count_a_model_and_month")]

    def __str__(self):
        return f"{self.count} questions in {self.month:%B %Y}"


class Turn(models.Model):
    """One logged question: the answer, the snippets it stands on, what it cost and how it ended."""

    class Outcome(models.TextChoices):
        STOP = "stop", "Answered"
        LENGTH = "length", "Cut at Max tokens"
        CUT = "cut", "Broken off by the LLM"
        ERROR = "error", "Failed"
        DISCONNECTED = "disconnected", "The visitor left"

    class AnsweredBy(models.TextChoices):
        LLM = "llm", "LLM"
        EXTRACT = "extract", "Quoted passages"
        NOBODY = "nobody", "Nobody"

    class Rating(models.IntegerChoices):
        DOWN = -1, "Thumb down"
        NONE = 0, "Not rated"
        UP = 1, "Thumb up"

    model = models.ForeignKey(MLModel, on_delete=models.CASCADE, related_name="turns")
    session_key = models.CharField(max_length=100, blank=True, db_index=True)
    channel = models.CharField(max_length=20, default="api")
    question = models.TextField()
    answer = models.TextField(blank=True)
    answered_by = models.CharField(max_length=10, choices=AnsweredBy.choices, default=AnsweredBy.NOBODY)
    llm = models.CharField(max_length=100, blank=True, help_text="The name of the LLM that answered.")
    outcome = models.CharField(max_length=15, choices=Outcome.choices, default=Outcome.DISCONNECTED)
    error = models.TextField(blank=True)
    is_unanswered = models.BooleanField(default=False, help_text="Retrieval found nothing for it.")
    degraded = models.CharField(
        max_length=500, blank=True, help_text="What was away: an embedding service, an LLM; and what took its place."
    )
    searched_for = models.TextField(blank=True, help_text="What a follow-up was searched with, beside its own words.")
    guard_flags = models.JSONField(
        default=list, help_text="Facts of the answer that stand in no source: [{kind, text}]."
    )
    retrieval = models.CharField(max_length=10, blank=True)
    hits = models.JSONField(default=list, help_text="The snippets used: rank, id, title, uri, text, distances.")
    context_tokens = models.PositiveIntegerField(default=0)
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    cost = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    seconds = models.FloatField(default=0)
    is_reviewed = models.BooleanField(default=False)
    reviewer = models.CharField(max_length=150, blank=True)
    public_id = models.UUIDField(default=uuid4, unique=True, help_text="What clients know the answer by.")
    visitor = models.CharField(max_length=64, blank=True, help_text="A hash of the visitor, salted anew each day.")
    rating = models.SmallIntegerField(choices=Rating.choices, default=Rating.NONE)
    rating_reason = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["model", "-id"]), models.Index(fields=["created_at"])]

    def __str__(self):
        return self.question[:80]


class Lead(models.Model):
    """An e-mail address that a visitor left, to be answered by a person."""

    model = models.ForeignKey(MLModel, on_delete=models.CASCADE, related_name="leads")
    email = models.EmailField()
    turn = models.ForeignKey(Turn, on_delete=models.SET_NULL, null=True, related_name="leads")
    session_key = models.CharField(max_length=100, blank=True, db_index=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self):
        return self.email
