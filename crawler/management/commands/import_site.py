"""manage.py import_site TENANT/MODEL URL: a website imported to its end in this process; no worker is needed."""

import sys
import time
from functools import partial

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from tqdm import tqdm

from crawler.crawl import ImportRunning, import_site, new_import
from crawler.models import Import, Page
from crawler.site import SiteUnreachable
from models_app.jobs import perform_taken
from models_app.models import MLModel, Retrieval
from models_app.snippets import vector_counts
from models_app.targets import activated_tenant, split_target
from tenants.reporting import ReportingCommand, whole_number
from tenants.store import tenant_atomic

LISTED = 20
MOST_PAGES = 1_000_000


class Command(ReportingCommand):
    help = "Import a website into the model TENANT/MODEL, which is made with the defaults if it is not there."

    def add_arguments(self, parser):
        super().add_arguments(parser)
        parser.add_argument("target", metavar="TENANT/MODEL")
        parser.add_argument("address", metavar="URL", help="Where to start, such as example.com or example.com/help.")
        parser.add_argument("--max-pages", type=whole_number(1, MOST_PAGES), help="Read no more pages than this.")
        parser.add_argument("--no-images", action="store_true", help="Leave images out of the snippets.")
        parser.add_argument("--source-url", action="store_true", help="End each snippet with its page's address.")
        parser.add_argument(
            "--retrieval",
            choices=Retrieval.values,
            help="Retrieval of a model that is made; one that is there keeps its own.",
        )

    def handle(self, **options):
        super().handle(**options)
        if self.job.state != Import.State.DONE:
            raise CommandError(self.job.message, returncode=130 if self.job.state == Import.State.STOPPED else 1)

    def report(self, *, target, address, retrieval, **options):
        slug, model_slug = split_target(target)
        chosen = _import_options(options)
        with activated_tenant(slug):
            try:
                # One transaction: what is refused leaves no new model behind, and no worker is quicker than this one.
                with tenant_atomic():
                    model = _model(model_slug, retrieval)
                    self.job = Import.take(new_import(model, address, **chosen).pk)
            except (ImportRunning, SiteUnreachable) as error:
                raise CommandError(str(error)) from error
            started = time.monotonic()
            _perform(self.job)
            return {"target": target, **_report(self.job, time.monotonic() - started)}

    def as_text(self, report):
        return _as_text(report)


def _perform(job: Import) -> None:
    bars = _Bars()
    try:
        perform_taken(job, partial(import_site, watch=bars.show))
    except KeyboardInterrupt:
        pass  # the job's row says so, and so does the report
    finally:
        bars.close()


def _model(slug: str, retrieval: str | None) -> MLModel:
    """Return the model of this slug, made with the defaults if there is none; raises CommandError."""
    model = MLModel.objects.filter(slug=slug).first()
    if model is None:
        return _new_model(slug, retrieval)
    if retrieval not in (None, model.retrieval):
        raise CommandError(
            f"The model “{slug}” is there already, with {model.retrieval} retrieval. Leave --retrieval out, "
            "or change the retrieval under Behaviour first."
        )
    return model


def _new_model(slug: str, retrieval: str | None) -> MLModel:
    model = MLModel(slug=slug, name=slug.replace("-", " ").capitalize())
    model.retrieval = retrieval or model.retrieval
    try:
        model.full_clean()
    except ValidationError as error:
        raise CommandError(f"“{slug}” cannot be a model's name: {' '.join(error.messages)}") from error
    model.save()
    return model


def _import_options(options: dict) -> dict:
    """Return those of the import's fields that were given; the others are the model's own."""
    chosen = {}
    if options["max_pages"] is not None:
        chosen["max_pages"] = options["max_pages"]
    if options["no_images"]:
        chosen["import_images"] = False
    if options["source_url"]:
        chosen["insert_source_url"] = True
    return chosen


class _Bars:
    """A progress bar for each phase of an import, on standard error; none where nobody watches."""

    def __init__(self):
        self._phase, self._bar = "", None

    def show(self, job: Import) -> None:
        if job.phase != self._phase:
            self.close()
            self._phase = job.phase
            self._bar = tqdm(desc=job.get_phase_display(), file=sys.stderr, disable=None, unit="")
        self._bar.total, self._bar.n = job.total_count, job.done_count
        self._bar.refresh()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def _report(job: Import, seconds: float) -> dict:
    with_vector, snippets = vector_counts(job.model)
    return {
        "state": job.state,
        "message": job.message,
        "pages": job.pages_by_state(),
        "snippets": snippets,
        "vectors": with_vector,
        "vectors_to_make": snippets - with_vector if job.model.needs_vectors else 0,
        "seconds": round(seconds, 1),
        "notes": job.notes,
        "skipped": _troubled(job, Page.State.SKIPPED),
        "failed": _troubled(job, Page.State.FAILED),
    }


def _troubled(job: Import, state: str) -> list[dict]:
    pages = job.pages.filter(state=state).values("url", "reason", "report__message")
    return [{"url": page["url"], "reason": page["reason"], "message": page["report__message"]} for page in pages]


def _as_text(report: dict) -> str:
    lines = [f"{count:>6,}  {Page.State(state).label}" for state, count in report["pages"].items()]
    lines.append(f"{report['snippets']:>6,}  snippets in the model, {report['vectors']:,} with their vector")
    if report["vectors_to_make"]:
        command = f"python manage.py vectorise {report['target']}"
        lines.append(f"{report['vectors_to_make']:>6,}  vectors to make: run `{command}`")
    lines.append(f"{report['seconds']:>6,}  seconds")
    lines += [f"Note: {note}" for note in report["notes"]]
    for kind in ("skipped", "failed"):
        troubled = report[kind]
        lines += [f"{kind.capitalize()}: {page['url']} ({page['reason']})" for page in troubled[:LISTED]]
        if len(troubled) > LISTED:
            lines.append(f"... and {len(troubled) - LISTED:,} more {kind}; --json lists all")
    if report["state"] == Import.State.DONE:
        lines.append(report["message"])
    return "\n".join(lines)
