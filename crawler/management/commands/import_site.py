"""manage.py import_site TENANT/MODEL URL: an import to its end in this process; no worker is needed.

One URL is a website to crawl; several, or a file of them, are single pages; none splits the stored pages anew.
"""

import sys
import time
from functools import partial
from pathlib import Path

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from tqdm import tqdm

from crawler.crawl import ImportRunning, NothingToImport, import_site, new_import, split_options
from crawler.models import Import, Page
from crawler.web.path_patterns import PatternError, parse_patterns
from crawler.web.site import SiteUnreachable
from models_app.jobs import perform_taken
from models_app.models import MLModel, Retrieval
from models_app.snippets import vector_counts
from models_app.targets import activated_tenant, split_target
from tenants.reporting import ReportingCommand, whole_number
from tenants.store import tenant_atomic

LISTED = 20
MOST_PAGES = 1_000_000


class Command(ReportingCommand):
    help = "Import a website, or single pages, into the model TENANT/MODEL, which is made if it is not there."

    def add_arguments(self, parser):
        super().add_arguments(parser)
        parser.add_argument("target", metavar="TENANT/MODEL")
        parser.add_argument(
            "addresses",
            metavar="URL",
            nargs="*",
            help="Where to start, such as example.com or example.com/help; several URLs are read as single pages.",
        )
        parser.add_argument(
            "--pages-from", metavar="FILE", type=Path, help="Read the pages that FILE lists, one a line."
        )
        parser.add_argument("--split-again", action="store_true", help="Split the stored pages anew; fetch nothing.")
        parser.add_argument(
            "--include", metavar="PATTERN", action="append", help="Read such paths only: /help, *.html$."
        )
        parser.add_argument("--exclude", metavar="PATTERN", action="append", help="Do not read such paths.")
        parser.add_argument("--max-depth", type=whole_number(0, MOST_PAGES), help="Follow no more links in a row.")
        parser.add_argument("--max-pages", type=whole_number(1, MOST_PAGES), help="Read no more pages than this.")
        parser.add_argument("--documents", action="store_true", help="Import PDF and Office files that pages link to.")
        parser.add_argument("--render", action="store_true", help="Draw pages that are empty without scripts.")
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

    def report(self, *, target, addresses, retrieval, **options):
        slug, model_slug = split_target(target)
        chosen = _import_options(options) | _what_to_read(addresses, options)
        with activated_tenant(slug):
            try:
                # One transaction: what is refused leaves no new model behind, and no worker is quicker than this one.
                with tenant_atomic():
                    model = model_named(model_slug, retrieval)
                    if options["split_again"]:
                        chosen = split_options(model)
                    self.job = Import.take(new_import(model, **chosen).pk)
            except (ImportRunning, NothingToImport, SiteUnreachable) as error:
                raise CommandError(str(error)) from error
            started = time.monotonic()
            perform_watched(self.job)
            return {"target": target, **report_of(self.job, time.monotonic() - started)}

    def as_text(self, report):
        return _as_text(report)


def perform_watched(job: Import) -> None:
    """Do the import in this process, with bars of its progress where somebody watches."""
    bars = _Bars()
    try:
        perform_taken(job, partial(import_site, watch=bars.show))
    except KeyboardInterrupt:
        pass  # the job's row says so, and so does the report
    finally:
        bars.close()


def model_named(slug: str, retrieval: str | None) -> MLModel:
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


def _what_to_read(addresses: list[str], options: dict) -> dict:
    """Return the import's kind and addresses; raises CommandError where none or too much is named."""
    listed = _listed_pages(options["pages_from"]) if options["pages_from"] else []
    if options["split_again"]:
        if addresses or listed:
            raise CommandError("--split-again works on the stored pages: leave the URLs out.")
        return {}
    if not addresses and not listed:
        raise CommandError("Name the URL to start at, or --pages-from FILE, or --split-again.")
    if listed or len(addresses) > 1:
        return {"kind": Import.Kind.PAGES, "addresses": list(dict.fromkeys([*addresses, *listed]))}
    return {"address": addresses[0]}


def _listed_pages(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read: {error}") from error
    listed = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not listed:
        raise CommandError(f"{path} lists no page.")
    return listed


def _import_options(options: dict) -> dict:
    """Return those of the import's fields that were given; the others are the model's own."""
    chosen = {name: options[name] for name in ("max_pages", "max_depth") if options[name] is not None}
    for option, field in (("include", "include_paths"), ("exclude", "exclude_paths")):
        if options[option]:
            chosen[field] = "\n".join(options[option])
            _refuse_bad_patterns(option, chosen[field])
    chosen["imports_documents"], chosen["renders_scripts"] = options["documents"], options["render"]
    if options["no_images"]:
        chosen["import_images"] = False
    if options["source_url"]:
        chosen["insert_source_url"] = True
    return chosen


def _refuse_bad_patterns(option: str, patterns: str) -> None:
    try:
        parse_patterns(patterns)
    except PatternError as error:
        raise CommandError(f"--{option}: {error.message}") from error


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


def report_of(job: Import, seconds: float) -> dict:
    """Return all there is to say of an import that has ended."""
    with_vector, snippets = vector_counts(job.model)
    return {
        "state": job.state,
        "kind": job.kind,
        "message": job.message,
        "pages": job.pages_by_state(),
        "changes": job.changes,
        "usage": job.usage,
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
    lines += _change_lines(report) + _usage_lines(report["usage"])
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


def _change_lines(report: dict) -> list[str]:
    """Return a line each of what became of the pages and of their snippets; none where the import came to no end."""
    names = {"pages": "Files" if report["kind"] == Import.Kind.FILES else "Pages", "snippets": "Snippets"}
    return [
        f"{words}: {', '.join(f'{count:,} {name}' for name, count in report['changes'][what].items())}"
        for what, words in names.items()
        if what in report["changes"]
    ]


def _usage_lines(usage: dict) -> list[str]:
    """Return a line of what the LLM was asked, if it was, or was spared."""
    if not any(usage.values()):
        return []
    calls, saved = (
        f"{usage[f'{prefix}calls']:,} calls, {usage[f'{prefix}input_tokens']:,} tokens in, "
        f"{usage[f'{prefix}output_tokens']:,} tokens out"
        for prefix in ("", "saved_")
    )
    return [f"LLM: {calls}; saved, as pages had not changed: {saved}"]
