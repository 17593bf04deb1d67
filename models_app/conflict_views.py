"""An edited snippet against its page, as people see it: the texts to decide between, and a snippet's history."""

from dataclasses import dataclass
from hashlib import sha256

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from models_app import snippets
from models_app.forms import SnippetForm
from models_app.models import SnippetVersion, TrainingSnippet
from models_app.snippets import Choice, ConflictMoved, SnippetMoved
from models_app.word_diff import mark_changes, mark_sides
from tenants.dialogs import dialog, saved
from tenants.permissions import editor_required, refused

DONE = {
    Choice.MINE: "Your text stays.",
    Choice.THEIRS: "The snippet says what its page says.",
    Choice.MERGED: "Your new text is saved.",
}
DELETED = "Snippet deleted."
OUTDATED = "The snippet or its page has changed since you opened this. Look at the texts as they are now."
RESTORE_OUTDATED = "This snippet has changed since you opened this: nothing was restored. This is its history now."


class MergedTextForm(SnippetForm):
    """The text that the owner writes out of the two."""

    class Meta(SnippetForm.Meta):
        fields = ("prompt", "completion")


@dataclass(frozen=True)
class Text:
    """One of the texts to decide between: its title and words, with what differs marked."""

    heading: str
    prompt: SafeString
    completion: SafeString


@dataclass(frozen=True)
class Change:
    """One step of a snippet's history: the version that was replaced, and what the text that came after changed."""

    version: SnippetVersion
    prompt: SafeString
    completion: SafeString
    is_current: bool  # the version says what the snippet says today


@require_http_methods(["GET", "POST"])
def snippet_conflict(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """The dialog that shows what the page said, what it says now and the owner's text, and asks."""
    row = _snippet(model_slug, pk)
    if request.method == "POST" and not request.role.may_edit:
        return refused(request, "Only editors and owners decide about a snippet's text.")
    form = MergedTextForm(request.POST or None, initial={"prompt": row.prompt, "completion": row.completion})
    notice = ""
    if request.method == "POST" and row.conflict:
        choice = request.POST.get("choice", "")
        if request.POST.get("seen") != _seen(row):
            notice = OUTDATED
        elif choice not in list(Choice):
            notice = "Choose one of the texts first."
        elif choice != Choice.MERGED or form.is_valid():
            try:
                return _decided(request, row, Choice(choice), form)
            except ConflictMoved:
                row, notice = _snippet(model_slug, pk), OUTDATED
    return dialog(request, "partials/snippet_conflict.html", _context(row, form, notice), _page_of(request, row))


def _decided(request: HttpRequest, row: TrainingSnippet, choice: Choice, form: MergedTextForm) -> HttpResponse:
    texts = form.cleaned_data if choice == Choice.MERGED else {}
    snippets.resolve(row, choice, author=request.user.email, **texts)
    is_deleted = choice == Choice.THEIRS and row.conflict == TrainingSnippet.Conflict.GONE
    return saved("snippets-changed", toast=DELETED if is_deleted else DONE[choice])


def _context(row: TrainingSnippet, form: MergedTextForm, notice: str) -> dict:
    return {
        "snippet": row,
        "model": row.model,
        "form": form,
        "notice": notice,
        "texts": _texts(row) if row.conflict else [],
        "is_gone": row.conflict == TrainingSnippet.Conflict.GONE,
        "seen": _seen(row),
        "tokens": row.token_count,
    }


def _texts(row: TrainingSnippet) -> list[Text]:
    """Return the texts side by side: against what the page said, what it changed, and what the owner did."""
    own_titles, own_texts = mark_sides(row.source_prompt, row.prompt), mark_sides(row.source_completion, row.completion)
    own = Text("Your text", own_titles[1], own_texts[1])
    if row.conflict == TrainingSnippet.Conflict.GONE:
        return [Text("What the page said", own_titles[0], own_texts[0]), own]
    titles = mark_sides(row.source_prompt, row.new_prompt)
    texts = mark_sides(row.source_completion, row.new_completion)
    return [
        Text("What the page said", titles[0], texts[0]),
        Text("What the page says now", titles[1], texts[1]),
        own,
    ]


def _seen(row: TrainingSnippet) -> str:
    """Return what tells whether somebody decides about the texts that they were shown."""
    return sha256("\0".join(snippets.asked_texts(row)).encode()).hexdigest()


@require_GET
def snippet_history(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """The dialog with a snippet's earlier texts, the newest first, each with what was changed about it."""
    return _history(request, _snippet(model_slug, pk))


def _history(request: HttpRequest, row: TrainingSnippet, notice: str = "") -> HttpResponse:
    seen = snippets.seen_hash(row, row.uri)
    context = {"snippet": row, "model": row.model, "changes": _changes(row), "seen": seen, "notice": notice}
    return dialog(request, "partials/snippet_history.html", context, _page_of(request, row))


def _changes(row: TrainingSnippet) -> list[Change]:
    changes, after = [], row
    for version in row.versions.all():
        prompt = mark_changes(version.prompt, after.prompt)
        is_current = (version.prompt, version.completion) == (row.prompt, row.completion)
        changes.append(Change(version, prompt, mark_changes(version.completion, after.completion), is_current))
        after = version
    return changes


@require_POST
@editor_required
def snippet_restore(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """Give the snippet one of its earlier texts again: the one that `version` names."""
    row = _snippet(model_slug, pk)
    number = request.POST.get("version", "")
    version = get_object_or_404(row.versions, pk=int(number) if number.isdecimal() else 0)
    try:
        snippets.restore(version, request.user.email, request.POST.get("seen", ""))
    except SnippetMoved:
        return _history(request, _snippet(model_slug, pk), RESTORE_OUTDATED)
    return saved("snippets-changed", toast="The earlier text is back.")


def _snippet(model_slug: str, pk: int) -> TrainingSnippet:
    return get_object_or_404(TrainingSnippet.objects.select_related("model"), pk=pk, model__slug=model_slug)


def _page_of(request: HttpRequest, row: TrainingSnippet) -> str:
    return reverse("models_app:training_data", args=[request.tenant.slug, row.model.slug])
