"""Shows the public API's OpenAPI document, to programs as JSON and to people as a reference. Neither needs a key."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe


@require_safe
def document(request: HttpRequest) -> HttpResponse:
    """Return the document as JSON; pages of every origin may read it."""
    # What makes it is loaded by whoever asks first: a process that only chats has no use for it.
    from chat.openapi import openapi_document

    return JsonResponse(openapi_document(), headers={"Access-Control-Allow-Origin": "*"})


@require_safe
def reference(request: HttpRequest) -> HttpResponse:
    """The document as a page that can be tried out with a key; all of it comes from here."""
    return render(request, "pages/api_reference.html")
