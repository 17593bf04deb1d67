"""manage.py search TENANT/MODEL "question": what retrieval finds, with each leg's ranks and scores."""

from dataclasses import asdict

from models_app.models import Retrieval
from models_app.retrieval import LIMIT, retrieve
from models_app.targets import activated_model
from tenants.reporting import ReportingCommand, whole_number

MOST_HITS = 1_000


class Command(ReportingCommand):
    help = "Rank a model's snippets for a question."

    def add_arguments(self, parser):
        super().add_arguments(parser)
        parser.add_argument("target", metavar="TENANT/MODEL")
        parser.add_argument("question")
        parser.add_argument("--retrieval", choices=Retrieval.values, help="instead of the model's own")
        parser.add_argument(
            "--limit", type=whole_number(1, MOST_HITS), default=LIMIT, help="the most hits (default: %(default)s)"
        )

    def report(self, *, target, question, retrieval, limit, **options):
        with activated_model(target) as model:
            retrieved = retrieve(model, question, mode=retrieval, limit=limit)
        return {
            "question": question,
            "retrieval": retrieved.mode,
            "degraded": retrieved.degraded,
            "hits": [asdict(hit) for hit in retrieved.hits],
        }

    def as_text(self, report):
        lines = [report["degraded"]] if report["degraded"] else []
        lines += [_hit_as_text(hit) for hit in report["hits"]]
        return "\n".join(lines) or "Nothing was found."


def _hit_as_text(hit: dict) -> str:
    legs = f"words {hit['keyword_rank'] or '-'} · meaning {hit['semantic_rank'] or '-'}"
    return f"{hit['rank']:3}  {hit['title']}  ({legs})\n     {hit['uri']}"
