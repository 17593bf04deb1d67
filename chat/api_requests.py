"""Reads what callers of the public API send: unknown fields are ignored, known ones have to make sense."""

import json
from dataclasses import dataclass
from uuid import uuid4

from django.http import HttpRequest
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ParseError

from chat.models import Session
from chat.sessions import Exchange
from tenants.texts import storable

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
LONGEST_SESSION_KEY = Session._meta.get_field("key").max_length


@dataclass(frozen=True)
class ChatRequest:
    """A chat completion that is asked for."""

    model_slug: str
    question: str
    history: tuple[Exchange, ...]
    session_key: str  # empty: the history is the client's
    user: str  # what the client calls its visitor
    is_streamed: bool
    wants_usage: bool
    max_tokens: int | None
    temperature: float | None


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string"},
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"type": {"type": "string", "enum": ["text"]}, "text": {"type": "string"}},
                    "required": ["type", "text"],
                },
            },
        ]
    }
)
class ContentField(serializers.Field):
    """A message's content: a string, or a list of text parts."""

    default_error_messages = {
        "type": "must be a string or a list of text parts.",
        "part": "part {number} is not of the form {{'type': 'text', 'text': '...'}}; only text can be read.",
    }

    def to_internal_value(self, sent) -> str:
        if isinstance(sent, str):
            return storable(sent)
        if not isinstance(sent, list):
            self.fail("type")
        for number, part in enumerate(sent):
            if not (isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)):
                self.fail("part", number=number)
        return storable("\n".join(part["text"] for part in sent))


class TextField(serializers.CharField):
    """A visitor's text: what no database can hold is replaced, not refused."""

    def to_internal_value(self, sent) -> str:
        return super().to_internal_value(storable(sent) if isinstance(sent, str) else sent)


@extend_schema_field(OpenApiTypes.BOOL)
class SwitchField(serializers.Field):
    """True or false, and nothing that might pass for it."""

    default_error_messages = {"type": "must be true or false."}

    def to_internal_value(self, sent) -> bool:
        if not isinstance(sent, bool):
            self.fail("type")
        return sent


class MessageSerializer(serializers.Serializer):
    role = serializers.ChoiceField(choices=ROLES)
    content = ContentField(required=False, allow_null=True)  # an assistant's message may hold tool calls alone


class StreamOptionsSerializer(serializers.Serializer):
    include_usage = SwitchField(required=False, allow_null=True)


class MetadataSerializer(serializers.Serializer):
    session_id = serializers.CharField(
        required=False, allow_null=True, allow_blank=True, max_length=LONGEST_SESSION_KEY
    )


class ChatRequestSerializer(serializers.Serializer):
    model = serializers.CharField()
    messages = MessageSerializer(many=True, allow_empty=False)
    stream = SwitchField(required=False, allow_null=True)
    stream_options = StreamOptionsSerializer(required=False, allow_null=True)
    metadata = MetadataSerializer(required=False, allow_null=True)
    user = serializers.CharField(required=False, allow_null=True, allow_blank=True)
    safety_identifier = serializers.CharField(required=False, allow_null=True, allow_blank=True)
    max_tokens = serializers.IntegerField(required=False, allow_null=True, min_value=1)
    max_completion_tokens = serializers.IntegerField(required=False, allow_null=True, min_value=1)
    temperature = serializers.FloatField(required=False, allow_null=True, min_value=0, max_value=2)

    def validate_messages(self, messages: list[dict]) -> list[dict]:
        if messages[-1]["role"] != "user":
            raise serializers.ValidationError("the last message must have the role 'user': it is the question.")
        if not (messages[-1].get("content") or "").strip():
            raise serializers.ValidationError("the last message is empty: it is the question.")
        return messages


def read_chat_request(request: HttpRequest) -> ChatRequest:
    """Return the chat completion that the body asks for; raises ParseError, ValidationError, RequestDataTooBig."""
    return _chat_request(read_body(request, ChatRequestSerializer))


def read_body(request: HttpRequest, serializer_class: type[serializers.Serializer]) -> dict:
    """Return the fields of a JSON object that was sent; raises ParseError, ValidationError, RequestDataTooBig."""
    try:
        body = json.loads(request.body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ParseError("The body of the request is not valid JSON.") from None
    if not isinstance(body, dict):
        raise ParseError("The body of the request must be a JSON object.")
    serializer = serializer_class(data=body)
    serializer.is_valid(raise_exception=True)
    return serializer.validated_data


def _chat_request(fields: dict) -> ChatRequest:
    *earlier, last = fields["messages"]
    session_id = (fields.get("metadata") or {}).get("session_id")
    return ChatRequest(
        model_slug=fields["model"],
        question=last["content"].strip(),
        history=exchanges_of(earlier),
        # An empty one asks for a new session, whose key the answer names.
        user=fields.get("safety_identifier") or fields.get("user") or "",
        session_key=str(uuid4()) if session_id == "" else session_id or "",
        is_streamed=bool(fields.get("stream")),
        wants_usage=bool((fields.get("stream_options") or {}).get("include_usage")),
        max_tokens=fields.get("max_completion_tokens") or fields.get("max_tokens"),
        temperature=fields.get("temperature"),
    )


def exchanges_of(messages: list[dict]) -> tuple[Exchange, ...]:
    """Return the client's messages as questions and their answers; greetings, system and tool messages are no part."""
    exchanges: list[Exchange] = []
    for message in messages:
        text = (message.get("content") or "").strip()
        if not text:
            continue
        if message["role"] == "user":
            exchanges.append(Exchange(text, ""))
        elif message["role"] == "assistant" and exchanges:
            question, answer = exchanges[-1].question, exchanges[-1].answer
            exchanges[-1] = Exchange(question, f"{answer}\n\n{text}".strip())
    return tuple(exchanges)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
