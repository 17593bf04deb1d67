"""A thin adapter for clients of Dify's chat API: its questions, ratings and errors in its own words, on our journey.

It is for servers: the key is secret and opens one model, or `inputs.model` names which. A conversation is our session.
"""

import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from rest_framework import serializers
from rest_framework.exceptions import NotFound

from chat.answer import Answered, Asked, Event, Piece, answer_question, whole_answer
from chat.api import api_view, find_model
from chat.api_errors import ApiError, api_error_of
from chat.api_limits import admit_question, visitor_of
from chat.api_requests import TextField, read_body
from chat.api_shapes import HEARTBEAT_SECONDS, StreamedAnswer, event_line, with_heartbeat
from chat.dify_shapes import dify_error, metadata_of
from chat.models import Session, Turn
from models_app.models import MLModel
from tenants.authentication import Caller

PING = "event: ping\n\n"
REASON_LENGTH = Turn._meta.get_field("rating_reason").max_length
LONGEST_CONVERSATION_ID = Session._meta.get_field("key").max_length
RATINGS = {"like": Turn.Rating.UP, "dislike": Turn.Rating.DOWN, None: Turn.Rating.NONE}


class DifyInputsSerializer(serializers.Serializer):
    model = serializers.CharField(required=False, help_text="Which model answers, under a key that opens several.")


class DifyChatSerializer(serializers.Serializer):
    inputs = DifyInputsSerializer()
    query = TextField()
    user = serializers.CharField(help_text="What you call your visitor; it is stored as a hash.")
    response_mode = serializers.ChoiceField(choices=["blocking", "streaming"], default="blocking")
    conversation_id = serializers.CharField(
        required=False, allow_null=True, allow_blank=True, max_length=LONGEST_CONVERSATION_ID
    )
    files = serializers.ListField(required=False, allow_null=True, max_length=0, help_text="Must be empty.")


class DifyFeedbackSerializer(serializers.Serializer):
    rating = serializers.ChoiceField(choices=["like", "dislike"], allow_null=True)
    user = serializers.CharField()
    content = TextField(required=False, allow_null=True, allow_blank=True)


@dataclass(frozen=True)
class Message:
    """One answer as Dify's clients know it; its ids are the same in all that is sent of it."""

    asked: Asked
    task_id: str = field(default_factory=lambda: str(uuid4()))
    created_at: int = field(default_factory=lambda: int(time.time()))
    began: float = field(default_factory=time.monotonic)

    def whole(self, answered: Answered) -> dict:
        """Return the answer in one."""
        head = self._head("message")
        return head | {"mode": "chat", "answer": answered.text, "metadata": self._metadata(answered)}

    def piece(self, text: str) -> str:
        """Return the event with some more text."""
        return event_line(self._head("message") | {"answer": text})

    def last(self, answered: Answered, sent: str) -> str:
        """Return the events that end the answer; what was sent is replaced first where it is not what it became."""
        replaced = (
            event_line(self._head("message_replace") | {"answer": answered.text}) if sent != answered.text else ""
        )
        return replaced + event_line(self._head("message_end") | {"metadata": self._metadata(answered)})

    def error(self, error: ApiError) -> str:
        """Return the event that ends an answer that failed."""
        return event_line(self._head("error") | dify_error(error).body)

    def _head(self, event: str) -> dict:
        message_id = str(self.asked.turn_id)
        return {
            "event": event,
            "task_id": self.task_id,
            "id": message_id,
            "message_id": message_id,
            "conversation_id": self.asked.session_key,
            "created_at": self.created_at,
        }

    def _metadata(self, answered: Answered) -> dict:
        return metadata_of(self.asked.model, answered, time.monotonic() - self.began)


@api_view("POST", shaped=dify_error)
async def chat_messages(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """Answer the query, streamed or not, in a conversation that the server remembers."""
    wanted = read_body(request, DifyChatSerializer)
    asked, headers = await caller.store.run(_admitted, request, caller, wanted)
    message = Message(asked)
    if wanted["response_mode"] == "blocking":
        return JsonResponse(message.whole(await whole_answer(caller.store, asked)), headers=headers)
    events = answer_question(caller.store, asked)
    await anext(events)  # a question that is refused is refused here, before the stream begins
    return StreamedAnswer(stream_message(message, events, HEARTBEAT_SECONDS), events, headers)


@api_view("POST", shaped=dify_error)
async def message_feedback(request: HttpRequest, caller: Caller, message_id: str) -> HttpResponse:
    """Note what the visitor thought of an answer; null takes it back."""
    wanted = read_body(request, DifyFeedbackSerializer)
    await caller.store.run(_rate, caller, message_id, wanted)
    return JsonResponse({"result": "success"})


@api_view("GET", shaped=dify_error)
async def parameters(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Tell what a client shows before the first question, and what it may offer."""
    model = await caller.store.run(_model_of, caller, request.GET.get("model"))
    return JsonResponse(_parameters(model))


async def stream_message(
    message: Message, events: AsyncIterator[Event], heartbeat_seconds: float
) -> AsyncIterator[str]:
    """Yield the answer as Dify's events, with a ping at once and in every silence."""
    yield PING
    sent = ""
    try:
        async with aclosing(with_heartbeat(events, heartbeat_seconds)) as beating:
            async for event in beating:
                if event is None:
                    yield PING
                elif isinstance(event, Piece):
                    sent += event.text
                    yield message.piece(event.text)
                elif isinstance(event, Answered):
                    yield message.last(event, sent)
    except Exception as error:
        yield message.error(api_error_of(error))


def _admitted(request: HttpRequest, caller: Caller, wanted: dict) -> tuple[Asked, dict[str, str]]:
    model = _model_of(caller, wanted["inputs"].get("model"))
    conversation_id = wanted.get("conversation_id") or ""
    if conversation_id and not _is_known(model, conversation_id):
        raise NotFound("Conversation Not Exists.")
    visitor = visitor_of(request, caller, wanted["user"])
    asked = Asked(
        model=model,
        question=wanted["query"],
        session_key=conversation_id or str(uuid4()),
        channel="dify",
        question_quota=caller.tenant.question_quota,
        visitor=visitor,
    )
    return asked, admit_question(caller, model, visitor)


def _is_known(model: MLModel, conversation_id: str) -> bool:
    """A conversation whose first answer failed has turns, but no session yet."""
    return (
        Session.objects.filter(model=model, key=conversation_id).exists()
        or Turn.objects.filter(model=model, session_key=conversation_id).exists()
    )


def _model_of(caller: Caller, slug: str | None) -> MLModel:
    """Return the model that answers; raises ModelNotFound, and ValidationError where the key leaves it open."""
    slugs = caller.key.model_slugs
    if slug is None and len(slugs) != 1:
        raise serializers.ValidationError(
            {"inputs": f"this API key opens {len(slugs)} models. Use a key that opens one, or name it in inputs.model."}
        )
    return find_model(caller, slugs[0] if slug is None else slug)


def _rate(caller: Caller, message_id: str, wanted: dict) -> None:
    try:
        turns = Turn.objects.filter(public_id=UUID(message_id), model__slug__in=caller.key.model_slugs)
    except ValueError:
        turns = Turn.objects.none()
    rating, reason = RATINGS[wanted["rating"]], (wanted.get("content") or "").strip()[:REASON_LENGTH]
    if not turns.update(rating=rating, rating_reason=reason if rating else ""):
        raise NotFound("Message Not Exists.")


def _parameters(model: MLModel) -> dict:
    off = {"enabled": False}
    return {
        "opening_statement": model.greeting,
        "suggested_questions": [line.strip() for line in model.conversation_starters.splitlines() if line.strip()],
        "suggested_questions_after_answer": off,
        "speech_to_text": off,
        "text_to_speech": off,
        "retriever_resource": {"enabled": True},
        "annotation_reply": off,
        "more_like_this": off,
        "sensitive_word_avoidance": off,
        "user_input_form": [],
        "file_upload": {"enabled": False, "image": off},
        "system_parameters": {"file_size_limit": 0, "image_file_size_limit": 0},
    }
