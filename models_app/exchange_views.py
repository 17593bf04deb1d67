"""Training data as a file to download: what the list shows, or all of it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import closing

from django.http import Http404, HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.views.decorators.http import require_GET

from models_app.exchange import write_csv, write_lines
from models_app.listing import Listing
from models_app.models import MLModel
from tenants.store import Store, active_store

WRITERS = {"jsonl": (write_lines, "application/jsonl"), "csv": (write_csv, "text/csv; charset=utf-8")}


@require_GET
def snippets_export(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponseBase:
    """The snippets of the list as it is narrowed, `?as=jsonl` or `csv`: who may read them may take them along."""
    model = get_object_or_404(MLModel, slug=model_slug)
    kind = request.GET.get("as", "jsonl")
    if kind not in WRITERS:
        raise Http404
    write, content_type = WRITERS[kind]
    parts = write(model, list(Listing.of(request.GET).ids(model)))
    name = f"{model.slug}-{timezone.localdate():%Y-%m-%d}.{kind}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return StreamingHttpResponse(_streamed(active_store(), parts), content_type=content_type, headers=headers)


async def _streamed(store: Store, parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the parts, the store active while each is made: the middleware has long left the request by then."""
    with closing(parts):
        while (part := await store.run(next, parts, None)) is not None:
            yield part
