"""What the widget's script asks for besides answers, which come from the public API."""

import re

from django.utils import timezone
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied, ValidationError

from chat.markup_tree import tree_of
from chat.models import Lead, Turn
from chat.proof_of_work import BITS, make_challenge
from chat.sessions import Exchange, keep_questionnaire, recall
from chat.widget_calls import CallSerializer, StorableField, WidgetCall, widget_call
from chat.widget_words import words_in
from models_app.models import MLModel
from models_app.questionnaire import LONGEST_ANSWER, MOST_QUESTIONS, questions_of

# Only ids that the script makes, of 128 random bits, open a conversation: others may be names that can be guessed.
OWN_SESSION = re.compile(r"w-[0-9a-f]{32}\Z")
LONGEST_ANSWER_TEXT = 100_000
MOST_LEADS_A_SESSION = 5
REASON_LENGTH = Turn._meta.get_field("rating_reason").max_length


class SessionField(serializers.RegexField):
    def __init__(self, **options):
        super().__init__(OWN_SESSION, **options)


class ConfigSerializer(CallSerializer):
    session = SessionField(required=False, allow_blank=True, default="")


class RenderedSerializer(CallSerializer):
    text = StorableField(max_length=LONGEST_ANSWER_TEXT)


class QuestionnaireSerializer(CallSerializer):
    session = SessionField()
    answers = serializers.ListField(
        child=StorableField(allow_blank=True, max_length=LONGEST_ANSWER), max_length=MOST_QUESTIONS
    )


class FeedbackSerializer(CallSerializer):
    turn = serializers.UUIDField()
    rating = serializers.ChoiceField(choices=Turn.Rating.choices)
    reason = StorableField(required=False, allow_blank=True, default="", max_length=REASON_LENGTH)


class LeadSerializer(CallSerializer):
    email = serializers.EmailField(max_length=254)
    session = SessionField()
    turn = serializers.UUIDField(required=False)


@widget_call(ConfigSerializer)
def config(call: WidgetCall) -> dict:
    """Return what the widget shows when it is opened: words, greeting, questions, and the conversation so far."""
    model = call.model
    return {
        "words": words_in(call.fields["language"]),
        "greeting": model.greeting,
        "starters": model.starters,
        "questionnaire": [
            {"question": each.text, "choices": each.choices} for each in questions_of(model.questionnaire)
        ],
        "takes_emails": model.takes_emails,
        "takes_ratings": model.logs_questions,
        "proof_bits": BITS if model.wants_proof_of_work else 0,
        "earlier": _earlier(model, call.fields["session"]),
    }


@widget_call(RenderedSerializer)
def rendered(call: WidgetCall) -> dict:
    """Return an answer's Markdown as a tree that is safe to show."""
    return {"tree": tree_of(call.fields["text"])}


@widget_call(QuestionnaireSerializer)
def questionnaire(call: WidgetCall) -> dict:
    """Keep what the visitor answered before the chat: the conversation begins with it."""
    questions = questions_of(call.model.questionnaire)
    answers = [answer.strip() for answer in call.fields["answers"]]
    if len(answers) != len(questions):
        raise ValidationError({"answers": "There must be one for each question, empty where it was skipped."})
    pairs = list(zip(questions, answers, strict=True))
    if not all(question.accepts(answer) for question, answer in pairs if answer):
        raise ValidationError({"answers": "One of them is none of the choices."})
    given = [Exchange(question.text, answer) for question, answer in pairs if answer]
    keep_questionnaire(call.model, call.fields["session"], given, timezone.now())
    return {}


@widget_call(FeedbackSerializer)
def feedback(call: WidgetCall) -> dict:
    """Note what the visitor thought of an answer, whose id only they have been told."""
    turns = Turn.objects.filter(model=call.model, public_id=call.fields["turn"])
    rating = call.fields["rating"]
    reason = call.fields["reason"].strip() if rating == Turn.Rating.DOWN else ""
    if not turns.update(rating=rating, rating_reason=reason):
        raise ValidationError({"turn": "There is no such answer."})
    return {}


@widget_call(LeadSerializer)
def lead(call: WidgetCall) -> dict:
    """Keep the e-mail that a visitor leaves, with the question it is about."""
    if not call.model.takes_emails:
        raise PermissionDenied("This chatbot takes no e-mail addresses.")
    session_key = call.fields["session"]
    leads = Lead.objects.filter(model=call.model, session_key=session_key)
    turn = Turn.objects.filter(model=call.model, public_id=call.fields.get("turn")).first()
    if leads.filter(email=call.fields["email"], turn=turn).exists():
        return {}
    if leads.count() >= MOST_LEADS_A_SESSION:
        raise PermissionDenied("This conversation has left enough e-mail addresses.")
    Lead.objects.create(model=call.model, email=call.fields["email"], turn=turn, session_key=session_key)
    return {}


@widget_call(CallSerializer)
def challenge(call: WidgetCall) -> dict:
    """Return a challenge for the next question's proof of work."""
    return {"challenge": make_challenge(call.caller.key.pk, call.model.slug)}


def _earlier(model: MLModel, session_key: str) -> list[list]:
    """Return the questions that the conversation remembers, each with its answer as a tree."""
    memory = recall(model, session_key, timezone.now()) if session_key else None
    return [[each.question, tree_of(each.answer)] for each in memory.exchanges] if memory else []
