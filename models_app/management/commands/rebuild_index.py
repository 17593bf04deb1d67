"""manage.py rebuild_index TENANT[/MODEL]: compares the index with its snippets, makes it anew, compares it again."""

import time
from collections.abc import Iterable
from dataclasses import asdict

from django.core.management.base import CommandError
from django.db import DatabaseError
from tqdm import tqdm

from models_app import index
from models_app.models import MLModel
from models_app.targets import activated_model, activated_tenant
from models_app.vectors import forget_lost_vectors
from tenants.reporting import ReportingCommand
from tenants.store import StoreNotReady, active_store, tenant_atomic

DIFFERS = "The index of {0} differs from its snippets, see above. Mend it: manage.py rebuild_index {0}"
STILL_DIFFERS = (
    "The index still differs from the snippets, see above. If nobody changed them meanwhile, the store's file is at "
    "fault: put a back-up of it back in its place."
)
UNREADABLE = "The index of {} could not be made anew, and stays as it was. {}"
KINDS = ("snippets", "terms", "vectors")


class Command(ReportingCommand):
    help = (
        "Compare the index of a tenant or a model with one made from scratch of its snippets, and make it anew. "
        "Questions are answered and snippets written meanwhile."
    )

    def add_arguments(self, parser):
        super().add_arguments(parser)
        parser.add_argument("target", metavar="TENANT[/MODEL]")
        parser.add_argument("--check", action="store_true", help="only compare, and change nothing")

    def handle(self, **options):
        super().handle(**options)
        if self.left:
            raise CommandError(DIFFERS.format(options["target"]) if options["check"] else STILL_DIFFERS)

    def report(self, *, target, check, **options):
        try:
            with activated_model(target) if "/" in target else activated_tenant(target) as named:
                models = [named] if "/" in target else list(MLModel.objects.all())
                report = _report(models, is_check=check)
        except index.RebuildSuperseded as error:
            raise CommandError(str(error)) from error
        except StoreNotReady as error:
            raise CommandError(UNREADABLE.format(target, error)) from error
        except DatabaseError as error:
            raise CommandError(UNREADABLE.format(target, f"SQLite says: {error}.")) from error
        self.left = report["store"]["left"] or any(model["left"] for model in report["models"])
        return report

    def as_text(self, report):
        return "\n".join(_lines(report))


def _report(models: list[MLModel], is_check: bool) -> dict:
    """Compare the models; unless that is all, rebuild them and compare them again."""
    found, was = index.check_store(), _compare(models, "Comparing")
    began = time.monotonic()
    lost = [0] * len(models) if is_check else _rebuild(models)
    seconds = None if is_check else round(time.monotonic() - began, 2)
    left, now = (found, was) if is_check else (index.check_store(), _compare(models, "Comparing again"))
    return {
        "store": {"tenant": active_store().slug, "found": found, "left": left, "seconds": seconds},
        "models": [
            {
                "model": model.slug,
                "snippets": after.snippets.count,
                "found": before.problems,
                "left": after.problems,
                "vectors_to_make": to_make,
                "agreed": _agreements(before),
                "agree": _agreements(after),
            }
            for model, before, after, to_make in zip(models, was, now, lost, strict=True)
        ],
    }


def _compare(models: list[MLModel], what: str) -> list[index.ModelCheck]:
    return [index.compare_model(model.pk) for model in tqdm(models, desc=what, unit="model")]


def _rebuild(models: list[MLModel]) -> list[int]:
    """Rebuild the index, and return how many snippets of each model have to be embedded again."""
    index.rebuild_store(model.pk for model in models)
    lost = []
    for model in models:
        with tenant_atomic():
            lost.append(forget_lost_vectors(model))
    return lost


def _agreements(check: index.ModelCheck) -> dict[str, dict[str, int]]:
    return {kind: asdict(getattr(check, kind)) for kind in KINDS}


def _lines(report: dict) -> Iterable[str]:
    store = report["store"]
    if store["seconds"] is None:
        yield f"{store['tenant']}: compared with an index made from scratch, nothing was changed."
    else:
        yield f"{store['tenant']}: the index was made anew in {store['seconds']} s, and compared with its snippets."
    yield from _problem_lines(store, is_check=store["seconds"] is None)
    if not store["left"]:  # SQLite's fault would be among them
        yield "  SQLite's own check of the full-text table finds no fault."
    if not report["models"]:
        yield "The tenant has no models."
    for model in report["models"]:
        agree = [f"{model['agree'][kind]['agreeing']:,} of {model['agree'][kind]['count']:,} {kind}" for kind in KINDS]
        yield f"{model['model']}: {', '.join(agree)} are as an index made from scratch has them."
        yield from _problem_lines(model, is_check=store["seconds"] is None)
        if model["vectors_to_make"]:
            yield (
                f"  {model['vectors_to_make']:,} snippets have lost their vectors and are not found by meaning until "
                f"they are embedded again: run `manage.py vectorise {store['tenant']}/{model['model']}`."
            )


def _problem_lines(part: dict, is_check: bool) -> Iterable[str]:
    for problem in part["found"]:
        if problem not in part["left"]:
            yield f"  mended: {problem}"
    for problem in part["left"]:
        yield f"  {'wrong' if is_check else 'still wrong'}: {problem}"
