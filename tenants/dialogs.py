"""How dialogs and lists answer: a dialog with itself or with what has changed, a list with its own address."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django_htmx.http import trigger_client_event


def dialog(request: HttpRequest, template: str, context: dict, behind: str) -> HttpResponse:
    """Return the dialog for #dialog; opened as a page of its own it leads to `behind`, the page it belongs to."""
    if request.method == "GET" and not request.htmx:
        return redirect(behind)
    return render(request, template, context)


def saved(*events: str, toast: str = "", level: str = "good") -> HttpResponse:
    """Return 204, which closes the dialog, with the events that others on the page reload themselves on."""
    response = HttpResponse(status=204)
    for event in events:
        trigger_client_event(response, event)
    if toast:
        trigger_client_event(response, "toast", {"text": toast, "level": level})
    return response


def given(request: HttpRequest) -> dict[str, str]:
    """Return what a list's address has to say: the search and filter fields that are filled in."""
    return {name: value for name, value in request.GET.items() if value}
