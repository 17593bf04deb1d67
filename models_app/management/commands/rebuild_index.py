"""manage.py rebuild_index TENANT[/MODEL]: checks the index against the snippets, makes it anew, checks it again."""

import time

from django.core.management.base import CommandError
from django.db import DatabaseError
from tqdm import tqdm

from models_app import index
from models_app.models import MLModel
from models_app.targets import activated_model, activated_tenant
from models_app.vectors import forget_lost_vectors
from tenants.reporting import ReportingCommand
from tenants.store import tenant_atomic


class Command(ReportingCommand):
    help = "Check the index of a tenant or a model against its snippets, and make it anew."

    def add_arguments(self, parser):
        super().add_arguments(parser)
        parser.add_argument("target", metavar="TENANT[/MODEL]")

    def handle(self, **options):
        super().handle(**options)
        if any(model["left"] for model in self.models):
            raise CommandError("The index still differs from the snippets, see above.")

    def report(self, *, target, **options):
        try:
            self.models = _rebuild_model(target) if "/" in target else _rebuild_tenant(target)
        except index.RebuildSuperseded as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            tenant = target.split("/")[0]
            raise CommandError(f"{error}. Make the whole store's index anew: rebuild_index {tenant}") from error
        return {"models": self.models}

    def as_text(self, report):
        return "\n".join(map(_model_as_text, report["models"])) or "The tenant has no models."


def _rebuild_model(target: str) -> list[dict]:
    with activated_model(target) as model:
        return _rebuild([model], lambda: index.rebuild_model(model.pk))


def _rebuild_tenant(slug: str) -> list[dict]:
    with activated_tenant(slug):
        models = list(MLModel.objects.all())
        return _rebuild(models, lambda: index.rebuild_store(model.pk for model in models))


def _rebuild(models: list[MLModel], rebuild) -> list[dict]:
    """Check the models, rebuild them, check them again."""
    found = [index.check_model(model.pk) for model in tqdm(models, desc="Checking", unit="model")]
    began = time.monotonic()
    rebuild()
    lost = []
    for model in models:
        with tenant_atomic():
            lost.append(forget_lost_vectors(model))
    seconds = round(time.monotonic() - began, 2)
    left = [index.check_model(model.pk) for model in tqdm(models, desc="Checking again", unit="model")]
    return [
        {
            "model": model.slug,
            "snippets": model.snippets.count(),
            "found": was,
            "left": is_left,
            "vectors_to_make": to_make,
            "seconds": seconds,
        }
        for model, was, is_left, to_make in zip(models, found, left, lost, strict=True)
    ]


def _model_as_text(model: dict) -> str:
    lines = [f"{model['model']}: {model['snippets']} snippets indexed anew in {model['seconds']} s."]
    lines += [f"  was wrong: {problem}" for problem in model["found"]]
    lines += [f"  is still wrong: {problem}" for problem in model["left"]]
    if model["vectors_to_make"]:
        lines.append(f"  {model['vectors_to_make']} vectors were lost: run `manage.py vectorise`.")
    return "\n".join(lines)
