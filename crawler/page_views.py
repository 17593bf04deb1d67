"""What came of an import, page by page: its report, its pages as a table, and one page with all that is known of it."""

import zlib
from dataclasses import dataclass

from csp.constants import NONE, SELF, UNSAFE_INLINE
from csp.decorators import csp
from django.core.paginator import Paginator
from django.db.models import Count, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_GET, require_POST
from django_htmx.http import replace_url

from crawler.markup.outline import outlined
from crawler.models import Import, Page
from crawler.overview import EXAMPLES_SHOWN, Trouble, nearly_empty_of, shells_of, site_overview
from crawler.views import PAGE_SIZE, import_or_404, job_context
from models_app.dropped import dropped_count, forget_dropped
from models_app.overview import overview_of
from tenants.dialogs import given
from tenants.permissions import editor_required
from tenants.store import tenant_atomic

VERSIONS_SHOWN = 10
# Findings that are no column of a page.
FINDINGS = {"shells": ("Empty without scripts", shells_of), "nearly-empty": ("Nearly empty", nearly_empty_of)}
# A stranger's HTML: nothing in it runs, loads or leads anywhere, whoever frames or opens it.
FRAME_POLICY = {
    "sandbox": True,
    "default-src": [NONE],
    "style-src": [UNSAFE_INLINE],
    "base-uri": [NONE],
    "form-action": [NONE],
    "frame-ancestors": [SELF],
}


@require_GET
def import_report(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """One import: how it went, what it changed and cost, what the site is made of, and all its pages."""
    job = import_or_404(model_slug, pk)
    context = job_context(job) | _table_context(request, job) | {"site": site_overview(job), "examples": EXAMPLES_SHOWN}
    return render(request, "pages/import_report.html", context | {"overview": overview_of(job.model), "tab": "imports"})


@require_GET
def page_table(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """An import's pages alone, as filtered; the address bar follows."""
    job = import_or_404(model_slug, pk)
    response = render(request, "partials/page_table.html", _table_context(request, job) | {"model": job.model})
    report = reverse("crawler:import_report", args=[tenant_slug, model_slug, pk], query=given(request))
    return replace_url(response, report)


@dataclass(frozen=True)
class Chip:
    """One filter of the pages: the value it asks for, in words, how many pages have it, and where pressing it leads."""

    field: str
    value: str
    label: str
    count: int
    is_chosen: bool
    query: str

    @classmethod
    def of(cls, given: QueryDict, field: str, value: str, label: str, count: int) -> "Chip":
        """Return the filter in the table's address as `given`; pressed a second time it is taken off."""
        query, is_chosen = given.copy(), given.get(field) == value
        query.pop("page", None)
        query.pop(field, None)
        if not is_chosen:
            query[field] = value
        return cls(field, value, label, count, is_chosen, f"?{query.urlencode()}")


def _table_context(request: HttpRequest, job: Import) -> dict:
    words = request.GET.get("q", "").strip()
    pages = job.pages.defer("markdown", "landmarks", "source", "plan")
    found = _filtered(pages, request)
    if words:
        found = found.filter(Q(url__icontains=words) | Q(title__icontains=words))
    chips = _chips(request, job)
    return {
        "job": job,
        "words": words,
        "chips": chips,
        "chosen": [chip for group in chips for chip in group if chip.is_chosen],
        "page_obj": Paginator(found, PAGE_SIZE).get_page(request.GET.get("page")),
    }


def _filtered(pages: QuerySet, request: HttpRequest) -> QuerySet:
    for field, values in (("state", Page.State.values), ("change", Page.Change.values)):
        if (value := request.GET.get(field)) and value in values:
            pages = pages.filter(**{field: value})
    if reason := request.GET.get("reason"):
        pages = pages.filter(reason=reason)
    if (finding := request.GET.get("finding")) in FINDINGS:
        pages = FINDINGS[finding][1](pages)
    return pages


def _chips(request: HttpRequest, job: Import) -> list[list[Chip]]:
    """Return the filters that have pages, a list for each kind of them."""

    def chip(field: str, value: str, label: str, count: int) -> Chip:
        return Chip.of(request.GET, field, value, label, count)

    def counted(field: str) -> dict[str, int]:
        rows = job.pages.exclude(**{field: ""}).order_by().values_list(field).annotate(count=Count("pk"))
        return dict(rows.order_by("-count", field))

    def named(field: str, labels: dict[str, str]) -> list[Chip]:
        counts = counted(field)
        return [chip(field, value, labels[value], counts[value]) for value in labels if value in counts]

    findings = ((value, label, narrow(job.pages).count()) for value, (label, narrow) in FINDINGS.items())
    reasons = (Trouble(reason, count) for reason, count in counted("reason").items())
    groups = [
        named("state", dict(Page.State.choices)),
        named("change", dict(Page.Change.choices)),
        [chip("finding", value, label, count) for value, label, count in findings if count],
        [chip("reason", trouble.reason, trouble.label, trouble.count) for trouble in reasons],
    ]
    return [group for group in groups if group]


@require_GET
def page_report(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """One page: what was selected of it, what survived each step, how it was split, and which snippets it gave."""
    page = _page_or_404(model_slug, pk)
    job, model = page.job, page.job.model
    own = model.snippets.filter(uri=page.final_url or page.url, source=page.snippet_source)
    versions = Page.objects.filter(job__model=model, url=page.url).select_related("job")
    context = {
        "page": page,
        "job": job,
        "model": model,
        "snippets": own,
        "dropped_count": dropped_count(model, page.final_url or page.url),
        "loss": _loss_rows(page.report.get("loss") or {}),
        "versions": versions.defer("markdown", "landmarks", "source", "plan").order_by("-job_id")[:VERSIONS_SHOWN],
        "overview": overview_of(model),
        "tab": "imports",
    }
    return render(request, "pages/page_report.html", context)


@require_POST
@editor_required
def page_dropped(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """Let the next import bring the page's sections again that were deleted by hand, also if it has not changed."""
    page = _page_or_404(model_slug, pk)
    model, address = page.job.model, page.final_url or page.url
    with tenant_atomic():
        is_restored = forget_dropped(model, address) > 0
        Page.objects.filter(job__model=model, url=address).update(split_hash="")
    return render(request, "partials/page_dropped.html", {"page": page, "model": model, "is_restored": is_restored})


LOSS_STEPS = {
    "page": "Visible on the page",
    "selected": "Selected as its own text",
    "moved": "Moved to the site’s own snippet",
    "snippets": "In its snippets",
}
LOSS_MEASURES = {"words": "words", "facts": "facts", "cells": "table cells"}


def _loss_rows(loss: dict) -> list[dict]:
    """Return the loss meter's rows: each step with its words, facts and table cells, against those of the page."""
    rows = []
    for step, label in LOSS_STEPS.items():
        if counts := loss.get(step):
            bars = [
                {"name": name, "count": counts.get(measure, 0), "most": _most(loss, measure)}
                for measure, name in LOSS_MEASURES.items()
            ]
            rows.append({"label": label, "bars": bars})
    return rows


def _most(loss: dict, measure: str) -> int:
    """Return the longest bar's count: titles stand in each snippet, so that more may be in them than on the page."""
    return max((loss[step].get(measure, 0) for step in LOSS_STEPS if loss.get(step)), default=0)


@require_GET
@xframe_options_sameorigin
@csp(FRAME_POLICY)
def page_outline(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """The page as it was read, with what was taken from it outlined: for a frame of the page's report."""
    page = _page_or_404(model_slug, pk)
    if not page.source:
        raise Http404
    return HttpResponse(outlined(zlib.decompress(page.source).decode(errors="replace"), page.url))


def _page_or_404(model_slug: str, pk: int) -> Page:
    return get_object_or_404(Page.objects.select_related("job__model"), pk=pk, job__model__slug=model_slug)
