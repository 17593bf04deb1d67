"""The OpenAPI document of the public API. Its views are no framework's, and some stream: what they take and give is
declared here by hand, over the very serializers that read the requests.
"""

from functools import cache

from django.conf import settings
from django.urls import path
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.parsers import JSONParser
from rest_framework.renderers import JSONRenderer
from rest_framework.views import APIView

from chat import openapi_shapes as shapes
from chat.api_requests import ChatRequestSerializer
from chat.dify import DifyChatSerializer, DifyFeedbackSerializer

JSON, STREAM = "application/json", "text/event-stream"
NEEDS_A_KEY = [{"ApiKey": []}]
RATE_HEADERS = [
    OpenApiParameter(name, kind, OpenApiParameter.HEADER, response=[200, 429], description=text)
    for name, kind, text in (
        ("x-ratelimit-limit-requests", int, "Requests a minute under the tightest limit that holds."),
        ("x-ratelimit-remaining-requests", int, "How many of them are left."),
        ("x-ratelimit-reset-requests", str, "When nothing of them is used any more, such as `42s`."),
    )
]
RETRY_AFTER = OpenApiParameter("Retry-After", int, OpenApiParameter.HEADER, response=[429, 503], description="Seconds.")
MEANINGS = {
    400: "A field is malformed, or the question is longer than the model takes.",
    401: "No key was sent, or it is not known.",
    403: "The key may not do this, or not from here.",
    404: "There is no such thing, or the key does not open it.",
    413: "The request is too large.",
    429: "A limit a minute is reached (`rate_limit_exceeded`), or one a month (`insufficient_quota`).",
    500: "The server had an error.",
    502: "The LLM or the embedding service is away.",
    503: "The workspace cannot be opened, or requests cannot be counted, for now.",
    504: "The LLM took too long.",
}
EVENT = {
    "type": "object",
    "description": "One server-sent event.",
    "properties": {"data": {"type": "string", "description": "JSON, in one line."}, "event": {"type": "string"}},
    "required": ["data"],
}
CHAT_EXAMPLE = {"model": "support", "messages": [{"role": "user", "content": "When do you open?"}]}
DIFY_EXAMPLE = {"inputs": {}, "query": "When do you open?", "user": "visitor-123"}
DESCRIPTION = """
Ask a workspace's chatbots from a program. Make a key in the dashboard and send it as `Authorization: Bearer <key>`.

The chat has the shape of OpenAI's, so that its clients work unchanged; what is ours stands in fields beside it
(`sources`, `answered_by`, `session_id`). A client of Dify's chat API works with a key that opens one model.
"""


class Described(APIView):
    """A route as the document has it. It is never served."""

    authentication_classes = ()
    parser_classes = (JSONParser,)
    renderer_classes = (JSONRenderer,)
    permission_classes = ()


def _errors(serializer: type, *statuses: int) -> dict:
    return {(status, JSON): OpenApiResponse(serializer, description=MEANINGS[status]) for status in statuses}


def _example(name: str, value: dict) -> OpenApiExample:
    return OpenApiExample(name, value=value, request_only=True)


class ChatCompletions(Described):
    @extend_schema(
        operation_id="createChatCompletion",
        tags=["Chat"],
        summary="Answer the last message, whole or as a stream of events",
        description="With `stream` each event is one line `data: <chunk>`, the last one `data: [DONE]`; lines that "
        "begin with a colon are signs of life. An error in the middle is an event with the same `error` object.",
        request=ChatRequestSerializer,
        examples=[
            _example("A question", CHAT_EXAMPLE),
            _example("In a session", CHAT_EXAMPLE | {"metadata": {"session_id": "a-session"}}),
            _example("Streamed", CHAT_EXAMPLE | {"stream": True, "stream_options": {"include_usage": True}}),
        ],
        parameters=[*RATE_HEADERS, RETRY_AFTER],
        responses={
            (200, JSON): shapes.ChatCompletionSerializer,
            (200, STREAM): EVENT,
            **_errors(shapes.ApiErrorSerializer, 400, 401, 403, 404, 413, 429, 500, 502, 503, 504),
        },
        auth=NEEDS_A_KEY,
    )
    def post(self, request):
        """What is said above."""


class ModelList(Described):
    @extend_schema(
        operation_id="listModels",
        tags=["Models"],
        summary="List the models that the key opens",
        responses={(200, JSON): shapes.MODEL_LIST, **_errors(shapes.ApiErrorSerializer, 401, 403, 500, 503)},
        auth=NEEDS_A_KEY,
    )
    def get(self, request):
        """What is said above."""


class ModelDetail(Described):
    @extend_schema(
        operation_id="retrieveModel",
        tags=["Models"],
        summary="Describe one model",
        parameters=[OpenApiParameter("model", str, OpenApiParameter.PATH, description="The model's slug.")],
        responses={
            (200, JSON): shapes.ModelSerializer,
            **_errors(shapes.ApiErrorSerializer, 401, 403, 404, 500, 503),
        },
        auth=NEEDS_A_KEY,
    )
    def get(self, request, model):
        """What is said above."""


class DifyChatMessages(Described):
    @extend_schema(
        operation_id="createChatMessage",
        tags=["Dify"],
        summary="Answer a query in a conversation that the server remembers",
        description="Streamed, the events are `message`, `message_replace`, `message_end`, `error` and `ping`.",
        request=DifyChatSerializer,
        examples=[
            _example("A query", DIFY_EXAMPLE),
            _example("Streamed", DIFY_EXAMPLE | {"response_mode": "streaming"}),
        ],
        parameters=[*RATE_HEADERS, RETRY_AFTER],
        responses={
            (200, JSON): shapes.DifyMessageSerializer,
            (200, STREAM): EVENT,
            **_errors(shapes.DifyErrorSerializer, 400, 401, 403, 404, 413, 429, 500, 503),
        },
        auth=NEEDS_A_KEY,
    )
    def post(self, request):
        """What is said above."""


class DifyFeedback(Described):
    @extend_schema(
        operation_id="rateMessage",
        tags=["Dify"],
        summary="Keep a visitor's thumb and its reason with an answer; null takes it back",
        parameters=[OpenApiParameter("message_id", str, OpenApiParameter.PATH)],
        request=DifyFeedbackSerializer,
        responses={
            (200, JSON): shapes.DifyResultSerializer,
            **_errors(shapes.DifyErrorSerializer, 400, 401, 403, 404, 413, 500),
        },
        auth=NEEDS_A_KEY,
    )
    def post(self, request, message_id):
        """What is said above."""


class DifyParameters(Described):
    @extend_schema(
        operation_id="retrieveParameters",
        tags=["Dify"],
        summary="Tell the greeting and the conversation starters",
        parameters=[
            OpenApiParameter("model", str, description="Which model, under a key that opens several."),
            OpenApiParameter("user", str, description="Not looked at."),
        ],
        responses={
            (200, JSON): shapes.DifyParametersSerializer,
            **_errors(shapes.DifyErrorSerializer, 400, 401, 403, 404, 500),
        },
        auth=NEEDS_A_KEY,
    )
    def get(self, request):
        """What is said above."""


ROUTES = [
    path("v1/chat/completions", ChatCompletions.as_view()),
    path("v1/models", ModelList.as_view()),
    path("v1/models/<str:model>", ModelDetail.as_view()),
    path("v1/chat-messages", DifyChatMessages.as_view()),
    path("v1/messages/<str:message_id>/feedbacks", DifyFeedback.as_view()),
    path("v1/parameters", DifyParameters.as_view()),
]


@cache
def openapi_document() -> dict:
    """Return the OpenAPI document, ready to be written as JSON."""
    document = SchemaGenerator(patterns=ROUTES).get_schema(request=None, public=True)
    document["info"] = {"title": "Sitewise", "version": settings.SITEWISE_VERSION, "description": DESCRIPTION.strip()}
    document["servers"] = [{"url": "/"}]  # as the document itself was reached
    document["tags"] = [{"name": name} for name in ("Chat", "Models", "Dify")]
    document["components"]["securitySchemes"] = {"ApiKey": {"type": "http", "scheme": "bearer"}}
    return document
