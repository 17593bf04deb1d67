"""Measures what is retrieved for follow-up questions: by their own words, and with what the conversation is about.

    python -m tests.benchmarks.bench_follow_ups [--keep FOLDER]

Conversations in four languages over two English sites, the sample site and cirrus-ci-docs: which page answers, and
which words stand in the right place on it. Lines that change the subject must lose nothing. Whatever was chosen was
chosen on every other line; both halves are told. --keep leaves the imported sites for the next run.
"""

import argparse
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

PROJECT = Path(__file__).resolve().parents[2]
SITES = {
    "sample_site": PROJECT / "crawler" / "sample_site",
    "cirrus-ci-docs": PROJECT.parent / "shared" / "data" / "sites" / "cirrus-ci-docs",
}
MODES = ("keyword", "semantic", "hybrid")

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
sys.path[:0] = [str(PROJECT)]

import django  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import override_settings  # noqa: E402

django.setup()

from chat.context import Context, get_context  # noqa: E402
from crawler.crawl import import_site, new_import  # noqa: E402
from crawler.models import Import  # noqa: E402
from models_app.jobs import perform_taken  # noqa: E402
from models_app.models import MLModel, Retrieval  # noqa: E402
from tenants.models import Tenant  # noqa: E402
from tenants.store import activated, create_store, store_of  # noqa: E402

Retrieve = Callable[[MLModel, dict, str], Context]


def load() -> list[dict]:
    return [json.loads(line) for line in (Path(__file__).parent / "follow_ups.jsonl").read_text().splitlines()]


def by_own_words(model: MLModel, turn: dict, mode: str) -> Context:
    return get_context(model, turn["question"], mode=mode)


def in_conversation(model: MLModel, turn: dict, mode: str) -> Context:
    return get_context(model, turn["question"], turn["earlier"], mode)


def is_right(context: Context, turn: dict) -> bool:
    """Return whether the first hit is of a page that answers and holds the words of the right place on it."""
    hits = [packed.hit for packed in context.packed[:1]]
    return any(
        urlsplit(hit.uri).path in turn["pages"] and turn["contains"].casefold() in f"{hit.title}\n{hit.text}".casefold()
        for hit in hits
    )


def share_right(models: dict[str, MLModel], turns: list[dict], mode: str, retrieve: Retrieve) -> float:
    """Return hit@1."""
    right = [is_right(retrieve(models[turn["site"]], turn, mode), turn) for turn in turns]
    return sum(right) / len(right)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    class Silent(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(folder)))
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def imported_sites() -> dict[str, MLModel]:
    """Return a model for each site in the active store, importing those it does not know yet."""
    models = {}
    for name, folder in SITES.items():
        model, is_new = MLModel.objects.get_or_create(slug=name, name=name, retrieval=Retrieval.HYBRID)
        if is_new:
            with served(folder) as address:
                perform_taken(Import.take(new_import(model, address).pk), import_site)
        models[name] = model
    return models


@contextmanager
def a_store(folder: Path) -> Iterator[None]:
    """Activate the folder's store, made if need be, of a tenant in a control database that lives as long as this."""
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    with override_settings(STORES_DIR=folder, SITEWISE_ALLOW_LOOPBACK=True):
        tenant = Tenant.objects.create(slug="bench", name="Bench")
        if not store_of(tenant).path.exists():
            create_store(tenant)
        with activated(tenant):
            yield


def table(models: dict[str, MLModel], ways: dict[str, Retrieve]) -> None:
    turns = load()
    for title, changes in (("follow-ups", False), ("changes of subject", True)):
        of_kind = [turn for turn in turns if bool(turn.get("changes_subject")) == changes]
        for half, chosen in (("chosen on", of_kind[::2]), ("told on", of_kind[1::2]), ("all", of_kind)):
            print(f"\n{title}, {half} ({len(chosen)}), hit@1")
            for mode in MODES:
                shares = [f"{name} {share_right(models, chosen, mode, way):.3f}" for name, way in ways.items()]
                print(f"  {mode:<9}", "   ".join(shares))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, a_store(options.keep or Path(folder)):
        table(imported_sites(), {"own words": by_own_words, "in conversation": in_conversation})


if __name__ == "__main__":
    main()
