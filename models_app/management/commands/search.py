"""manage.py search TENANT/MODEL "question": what retrieval finds, with each leg's ranks and scores."""

import json
from dataclasses import asdict

from django.core.management.base import BaseCommand, CommandError

from models_app.models import Retrieval
from models_app.retrieval import LIMIT, Retrieved, retrieve
from models_app.targets import UnknownTarget, activated_model
from tenants.installation import prepare
from tenants.store import StoreNotReady


class Command(BaseCommand):
    help = "Rank a model's snippets for a question."

    def add_arguments(self, parser):
        parser.add_argument("target", metavar="TENANT/MODEL")
        parser.add_argument("question")
        parser.add_argument("--retrieval", choices=Retrieval.values, help="instead of the model's own")
        parser.add_argument("--limit", type=int, default=LIMIT, help="the most hits (default: %(default)s)")
        parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")

    def handle(self, *, target, question, retrieval, limit, json: bool, **options):
        prepare()
        try:
            with activated_model(target) as model:
                retrieved = retrieve(model, question, mode=retrieval, limit=limit)
        except (UnknownTarget, StoreNotReady) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(_as_json(question, retrieved) if json else _as_text(retrieved))


def _as_json(question: str, retrieved: Retrieved) -> str:
    report = {"question": question, "retrieval": retrieved.mode, "degraded": retrieved.degraded}
    return json.dumps(report | {"hits": [asdict(hit) for hit in retrieved.hits]}, ensure_ascii=False)


def _as_text(retrieved: Retrieved) -> str:
    lines = [retrieved.degraded] if retrieved.degraded else []
    for hit in retrieved.hits:
        legs = f"words {hit.keyword_rank or '-'} · meaning {hit.semantic_rank or '-'}"
        lines.append(f"{hit.rank:3}  {hit.title}  ({legs})\n     {hit.uri}")
    return "\n".join(lines) or "Nothing was found."
