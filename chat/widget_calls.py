"""How the widget's script asks: with a public key from a listed origin, as plain text, so that no preflight is needed.

Every call names its key, model and language. What is refused says so in words of the visitor's language, and may be
read by any page: it holds nothing of a tenant, and a page that is refused has to be able to show that it is.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.views.decorators.csrf import csrf_exempt
from rest_framework import serializers
from rest_framework.exceptions import MethodNotAllowed, ParseError, PermissionDenied

from chat.api_errors import ModelNotFound, api_error_of
from chat.api_limits import visitor_of
from chat.widget_words import words_in
from models_app.models import MLModel
from tenants.authentication import Caller, authenticate
from tenants.limits import Limit, admit
from tenants.store import activated
from tenants.texts import storable

MOST_BYTES = 400_000
MOST_CALLS_A_MINUTE = 120  # of one address, which may be an office's: an answer takes two calls
REFUSED = (401, 403, 404)


class StorableField(serializers.CharField):
    """A text without what no database can hold."""

    def to_internal_value(self, sent) -> str:
        return storable(super().to_internal_value(sent))


class CallSerializer(serializers.Serializer):
    """What every call says; each kind of call adds its own."""

    key = serializers.CharField(max_length=200)
    model = serializers.CharField(max_length=100)
    language = serializers.CharField(required=False, default="en", max_length=20)


@dataclass(frozen=True)
class WidgetCall:
    """A call that was let in, with the model's store active: who calls, for which model, and what was sent."""

    caller: Caller
    model: MLModel
    fields: dict


def widget_call(serializer: type[CallSerializer]) -> Callable:
    """Return the decorator of a view that takes a WidgetCall and returns what is sent as JSON."""

    def decorate(view: Callable[[WidgetCall], dict]) -> Callable[[HttpRequest], HttpResponse]:
        @csrf_exempt
        @wraps(view)
        def checked(request: HttpRequest) -> HttpResponse:
            sent = {}
            try:
                sent = _body(request)
                answer = _answer(request, sent, serializer, view)
                return _readable_from(request.headers["Origin"], JsonResponse(answer))
            except Exception as error:
                return _readable_from("*", _refusal(error, sent.get("language")))

        return checked

    return decorate


def _answer(request: HttpRequest, sent: dict, serializer: type[CallSerializer], view: Callable) -> dict:
    caller = authenticate(f"Bearer {sent.get('key', '')}", request.headers.get("Origin"))
    if not caller.is_public:
        raise PermissionDenied("This is a secret key: it belongs on a server. The widget takes a public one.")
    subject = f"widget:{caller.key.pk}:{visitor_of(request, caller)}"
    admit([Limit(subject, "One visitor", MOST_CALLS_A_MINUTE)], timezone.now())
    read = serializer(data=sent)
    read.is_valid(raise_exception=True)
    fields = read.validated_data
    with activated(caller.tenant):
        model = MLModel.objects.filter(slug=fields["model"]).first() if caller.may_use(fields["model"]) else None
        if model is None:
            raise ModelNotFound(fields["model"])
        return view(WidgetCall(caller, model, fields))


def _body(request: HttpRequest) -> dict:
    if request.method != "POST":
        raise MethodNotAllowed(request.method)
    if len(request.body) > MOST_BYTES:
        raise RequestDataTooBig
    try:
        sent = json.loads(request.body)
    except (ValueError, RecursionError):
        raise ParseError("The body of the request is not valid JSON.") from None
    if not isinstance(sent, dict):
        raise ParseError("The body of the request must be a JSON object.")
    return sent


def _refusal(error: Exception, language: object) -> JsonResponse:
    told = api_error_of(error)
    words = words_in(language if isinstance(language, str) else "")
    name = "refused" if told.status in REFUSED else "busy" if told.status == 429 else "away"
    headers = told.headers | ({"Allow": "POST"} if told.status == 405 else {})
    return JsonResponse(told.body | {"words": words[name]}, status=told.status, headers=headers)


def _readable_from(origin: str, response: HttpResponse) -> HttpResponse:
    patch_vary_headers(response, ["Origin"])
    response.headers["Access-Control-Allow-Origin"] = origin
    response.headers["Cache-Control"] = "no-store"
    return response
