"""The public API under /v1, by OpenAI's protocol: whoever speaks that can ask a tenant's chatbots, with a key.

A secret key opens all of it, to the models it is limited to. A public key opens the chat, from its listed origins.
"""

from collections.abc import Awaitable, Callable
from functools import wraps

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils.cache import patch_vary_headers
from django.views.decorators.csrf import csrf_exempt
from rest_framework.exceptions import AuthenticationFailed, MethodNotAllowed, PermissionDenied

from chat.answer import Asked, answer_question, whole_answer
from chat.api_errors import ApiError, ModelNotFound, UnknownAddress, api_error_of
from chat.api_limits import LIMIT_HEADERS, admit_question, visitor_of
from chat.api_requests import ChatRequest, read_chat_request
from chat.api_shapes import HEARTBEAT_SECONDS, Completion, StreamedAnswer, stream_parts
from chat.proof_of_work import HEADER as PROOF_HEADER
from chat.proof_of_work import refuse_unproven
from models_app.models import MLModel
from tenants.authentication import Caller, authenticate
from tenants.models import ApiKey
from tenants.origins import is_allowed_origin

PREFLIGHT_SECONDS = 600
BEFORE_THE_KEY = (AuthenticationFailed, MethodNotAllowed)  # refusals that come before a key speaks for the origin

ApiView = Callable[..., Awaitable[HttpResponseBase]]


def api_view(
    method: str, is_for_public_keys: bool = False, shaped: Callable[[ApiError], ApiError] = lambda error: error
) -> Callable[[ApiView], ApiView]:
    """Return the decorator that lets callers with a key in, answers browsers' preflights, and shapes every error.

    Errors are OpenAI's unless `shaped` makes another protocol's of them.
    """

    def decorate(view: ApiView) -> ApiView:
        @csrf_exempt
        @wraps(view)
        async def checked(request: HttpRequest, **parts: str) -> HttpResponseBase:
            origin = None
            try:
                if request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
                    return await _preflight(request, method)
                if request.method != method:
                    raise MethodNotAllowed(request.method)
                caller = await sync_to_async(authenticate)(
                    request.headers.get("Authorization", ""), request.headers.get("Origin")
                )
                if caller.is_public:
                    origin = request.headers["Origin"]
                    _refuse_unless(is_for_public_keys, "A public key opens the chat and nothing else.")
                response = await view(request, caller, **parts)
            except Exception as error:
                response = _error_response(shaped(api_error_of(error)), method)
                if isinstance(error, BEFORE_THE_KEY):
                    origin = await sync_to_async(_listed)(request.headers.get("Origin"))
            return _readable_from(origin, response)

        return checked

    return decorate


@api_view("POST", is_for_public_keys=True)
async def chat_completions(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """Answer the last of the messages, streamed or not."""
    wanted = read_chat_request(request)
    asked, headers = await caller.store.run(_admitted, request, caller, wanted)
    completion = Completion(asked.model.slug, asked.turn_id.hex, wanted.wants_usage)
    if not wanted.is_streamed:
        return JsonResponse(completion.whole(await whole_answer(caller.store, asked)), headers=headers)
    events = answer_question(caller.store, asked)
    await anext(events)  # a question that is refused is refused here, before the stream begins
    return StreamedAnswer(stream_parts(completion, events, HEARTBEAT_SECONDS), events, headers)


@api_view("GET")
async def model_list(request: HttpRequest, caller: Caller) -> HttpResponse:
    """List the models that the key may use."""
    return JsonResponse({"object": "list", "data": await caller.store.run(_described_models, caller)})


@api_view("GET")
async def model_detail(request: HttpRequest, caller: Caller, model_slug: str) -> HttpResponse:
    """Describe one model."""
    return JsonResponse(_described(await caller.store.run(find_model, caller, model_slug), caller))


@csrf_exempt
async def unknown_address(request: HttpRequest) -> HttpResponseBase:
    """Answer for every other address under /v1, so that pages of listed origins can read it, too."""
    asked_before = request.headers.get("Access-Control-Request-Method", "")
    origin = await sync_to_async(_listed)(request.headers.get("Origin"))
    if request.method == "OPTIONS" and asked_before and origin:
        return await _preflight(request, asked_before)
    return _readable_from(origin, _error_response(api_error_of(UnknownAddress(request.method, request.path))))


def _admitted(request: HttpRequest, caller: Caller, wanted: ChatRequest) -> tuple[Asked, dict[str, str]]:
    """Return the question as it may be asked, and the headers that tell how much more may be asked."""
    model = find_model(caller, wanted.model_slug)
    if caller.is_public and model.wants_proof_of_work:
        refuse_unproven(request.headers.get(PROOF_HEADER, ""), caller.key.pk, model.slug, wanted.question)
    visitor = visitor_of(request, caller, wanted.user, wanted.session_key)
    return _asked(caller, model, wanted, visitor), admit_question(caller, model, visitor)


def _asked(caller: Caller, model: MLModel, wanted: ChatRequest, visitor: str) -> Asked:
    return Asked(
        model=model,
        question=wanted.question,
        history=wanted.history,
        session_key=wanted.session_key,
        channel="widget" if caller.is_public else "api",
        question_quota=caller.tenant.question_quota,
        max_tokens=wanted.max_tokens,
        temperature=wanted.temperature,
        visitor=visitor,
    )


def find_model(caller: Caller, slug: str) -> MLModel:
    """Return the active store's model of this slug; raises ModelNotFound, also for one the key does not open."""
    model = MLModel.objects.filter(slug=slug).first() if caller.may_use(slug) else None
    if model is None:
        raise ModelNotFound(slug)
    return model


def _described_models(caller: Caller) -> list[dict]:
    return [_described(model, caller) for model in MLModel.objects.filter(slug__in=caller.key.model_slugs)]


def _described(model: MLModel, caller: Caller) -> dict:
    created = int(model.created_at.timestamp())
    return {"id": model.slug, "object": "model", "created": created, "owned_by": caller.tenant.slug}


async def _preflight(request: HttpRequest, method: str) -> HttpResponse:
    """Tell a browser whether pages of its origin may call: no key is sent yet, so any public key's list counts."""
    origin = await sync_to_async(_listed)(request.headers.get("Origin"))
    _refuse_unless(origin is not None, "No public key may be used from this origin.")
    headers = {
        "Access-Control-Allow-Methods": method,
        "Access-Control-Allow-Headers": request.headers.get("Access-Control-Request-Headers", "authorization"),
        "Access-Control-Max-Age": str(PREFLIGHT_SECONDS),
    }
    return _readable_from(origin, HttpResponse(status=204, headers=headers))


def _listed(origin: str | None) -> str | None:
    """Return the origin if a public key lists it, else None.

    A key that no longer works counts, too: else its pages could not even read that it does not.
    """
    if not origin:
        return None
    lists = ApiKey.objects.filter(kind=ApiKey.Kind.PUBLIC).values_list("allowed_origins", flat=True)
    return origin if any(is_allowed_origin(origin, allowed) for allowed in lists) else None


def _refuse_unless(is_allowed: bool, reason: str) -> None:
    if not is_allowed:
        raise PermissionDenied(reason)


def _readable_from(origin: str | None, response: HttpResponseBase) -> HttpResponseBase:
    """Let a browser show the response to pages of this origin, which has been checked; None opens it to no page."""
    patch_vary_headers(response, ["Origin"])
    if origin:
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Access-Control-Expose-Headers"] = ", ".join(LIMIT_HEADERS)
    return response


def _error_response(error: ApiError, allowed_method: str = "") -> JsonResponse:
    allow = {"Allow": f"{allowed_method}, OPTIONS"} if error.status == 405 else {}
    return JsonResponse(error.body, status=error.status, headers=error.headers | allow)
