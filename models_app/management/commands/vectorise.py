"""manage.py vectorise TENANT/MODEL: makes the model's missing embeddings in this process."""

import json
import time

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from models_app.embedder import EmbeddingError
from models_app.snippets import vector_counts
from models_app.targets import UnknownTarget, activated_model
from models_app.vectors import vectorise_missing
from tenants.installation import prepare
from tenants.store import StoreNotReady


class Command(BaseCommand):
    help = "Make the missing embeddings of a model, in this process; no worker is needed."

    def add_arguments(self, parser):
        parser.add_argument("target", metavar="TENANT/MODEL")
        parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")

    def handle(self, *, target, json: bool, **options):
        prepare()
        try:
            with activated_model(target) as model:
                report = _vectorise(model)
        except (UnknownTarget, StoreNotReady, EmbeddingError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(_as_json(report) if json else _as_text(report))


def _vectorise(model) -> dict:
    started = time.monotonic()
    with tqdm(desc="Embedding", unit="snippet") as bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        made = vectorise_missing(model, progress=show)
    with_vector, total = vector_counts(model)
    return {
        "made": made,
        "vectors": with_vector,
        "snippets": total,
        "seconds": round(time.monotonic() - started, 2),
    }


def _as_json(report: dict) -> str:
    return json.dumps(report)


def _as_text(report: dict) -> str:
    return "{made} vectors made in {seconds} s; {vectors} of {snippets} snippets have one.".format(**report)
