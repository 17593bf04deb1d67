"""manage.py evaluate --collection DIR: how well each retrieval finds what judged questions ask for."""

import math
from argparse import ArgumentTypeError
from pathlib import Path

from django.core.management.base import CommandError
from tqdm import tqdm

from models_app.collection import CollectionRefused, read_collection
from models_app.embedder import EmbeddingError
from models_app.evaluate import NotMeasured, evaluate
from models_app.models import MLModel
from tenants.reporting import ReportingCommand

DEFAULT_THRESHOLD = MLModel._meta.get_field("threshold").default
COLUMNS = ("ndcg@10", "recall@10", "mrr@10", "hit@1", "p50_ms", "p95_ms")


class Command(ReportingCommand):
    help = (
        "Measure keyword, semantic and hybrid retrieval on a collection of judged questions, through the product's own "
        "retrieval with the local embedder, in a throwaway store. Times include embedding the question."
    )

    def add_arguments(self, parser):
        super().add_arguments(parser)
        parser.add_argument(
            "--collection",
            required=True,
            type=Path,
            metavar="DIR",
            help="folder with corpus.jsonl.gz (id, title, text), queries.jsonl or queries.jsonl.gz (id, text) and "
            "qrels.tsv (qid, docid, rel, under a line with these names)",
        )
        parser.add_argument(
            "--threshold",
            type=_share,
            default=DEFAULT_THRESHOLD,
            help="the Threshold setting of the model: 0 lets every hit through, so that ranking alone is measured "
            "(default: %(default)s, a new model's)",
        )
        parser.add_argument("--keyword", action="store_true", help="measure Keyword alone: nothing is embedded")

    def report(self, *, collection, threshold, keyword, **options):
        with _Progress() as progress:
            try:
                measured = evaluate(read_collection(collection), threshold, not keyword, progress.show)
            except (CollectionRefused, NotMeasured) as error:
                raise CommandError(str(error)) from error
            except EmbeddingError as error:
                raise CommandError(f"{error} Or measure Keyword alone, with --keyword.") from error
        return {retrieval: figures.as_report() for retrieval, figures in measured.items()}

    def as_text(self, report):
        lines = ["".join([f"{'':10}", *(f"{column:>11}" for column in COLUMNS)])]
        for retrieval, figures in report.items():
            lines.append("".join([f"{retrieval:10}", *(f"{figures[column]:11.3f}" for column in COLUMNS)]))
        return "\n".join(lines)


def _share(argument: str) -> float:
    try:
        share = float(argument)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise ArgumentTypeError("it must be a number from 0 to 1.")
    return share


class _Progress:
    """One bar on stderr for each step."""

    def __init__(self):
        self._step, self._bar = "", tqdm(disable=True)

    def __enter__(self) -> "_Progress":
        return self

    def __exit__(self, *error) -> None:
        self._bar.close()

    def show(self, step: str, done: int, total: int) -> None:
        if step != self._step:
            self._bar.close()
            self._step, self._bar = step, tqdm(desc=step, total=total)
        self._bar.update(done - self._bar.n)
