"""manage.py vectorise TENANT/MODEL: makes the model's missing embeddings in this process."""

import time

from django.core.management.base import CommandError
from tqdm import tqdm

from models_app.embedder import EmbeddingError
from models_app.models import MLModel
from models_app.snippets import vector_counts
from models_app.targets import activated_model
from models_app.vectors import forget_vectors, vectorise_missing
from tenants.reporting import ReportingCommand


class Command(ReportingCommand):
    help = "Make the missing embeddings of a model, in this process; no worker is needed."

    def add_arguments(self, parser):
        super().add_arguments(parser)
        parser.add_argument("target", metavar="TENANT/MODEL")
        parser.add_argument("--anew", action="store_true", help="Drop the vectors that are there, and make all anew.")

    def report(self, *, target, anew, **options):
        started = time.monotonic()
        with activated_model(target) as model:
            if anew:
                forget_vectors(model)
            made = _vectorise(model)
            with_vector, total = vector_counts(model)
        seconds = round(time.monotonic() - started, 2)
        return {"made": made, "vectors": with_vector, "snippets": total, "seconds": seconds}

    def as_text(self, report):
        return "{made} vectors made in {seconds} s; {vectors} of {snippets} snippets have one.".format(**report)


def _vectorise(model: MLModel) -> int:
    with tqdm(desc="Embedding", unit="snippet") as bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        try:
            return vectorise_missing(model, progress=show)
        except EmbeddingError as error:
            raise CommandError(str(error)) from error
