"""A store as the first version made it: brought up to date, it answers as a fresh import of the same snippets."""

import numpy as np
import pytest
from django.core.management import call_command
from django.db.migrations.executor import MigrationExecutor

from models_app import index, snippets, vectors
from models_app.embedder import LOCAL_SPACE, embed_passages
from models_app.index.connection import write
from models_app.models import MLModel, TrainingSnippet
from models_app.retrieval import retrieve
from models_app.tasks import rebuild_outdated_indexes
from tenants.store import StoreNotReady, activated, connection
from tests.conftest import needs_local_embedder

pytestmark = pytest.mark.django_db(transaction=True)

FIRST = {"models_app": "0002_index", "crawler": "0001_initial", "chat": "0001_initial"}
TEXTS = {
    "Returns": "Unused goods may be sent back within 30 days for a full refund.",
    "Opening hours": "The shop is open from Tuesday to Saturday, nine to six.",
    "Fault ERR-1234": "ERR-1234 means that the pump is blocked by scale.",
    "Delivery": "A van brings large furniture to your door within five days.",
    "Versicherungskarte": "Die Karte der Krankenversicherung wird jedes Jahr erneuert.",
    "退款": "申请退款需要提供订单号。",
    "Prices": "All prices include the value added tax of your country.",
}
QUESTIONS = [
    "ERR-1234",
    "when may I send goods back?",
    "is the shop open on Sunday",
    "Karte",
    "退款",
    "furniture delivered to the door",
    "how do I train a parrot",
]


def make_first_version(tenant) -> None:
    """Lay the tables as the first migrations did, and fill them as the code of that time did."""
    with activated(tenant) as store:
        for app in ("chat", "crawler", "models_app"):
            call_command("migrate", app, "zero", database=store.alias, verbosity=0)
        for app, name in FIRST.items():
            call_command("migrate", app, name, database=store.alias, verbosity=0)
        apps = MigrationExecutor(connection()).loader.project_state(list(FIRST.items())).apps
        model = apps.get_model("models_app", "MLModel").objects.create(slug="support", name="Support")
        for title, text in TEXTS.items():
            row = model.snippets.create(prompt=title, completion=text, embedded_in="multilingual-e5-small")
            index_then(model.pk, row.pk, title, text)
        keep_vectors_then(model.pk, list(model.snippets.order_by("pk").values_list("pk", flat=True)))
        write("PRAGMA user_version = 1")


def index_then(model_id: int, key: int, title: str, text: str) -> None:
    """Index plain words: whatever the terms of that time were, they are not those of today."""
    columns = [" ".join(f"{model_id:06d}{word.lower()}" for word in part.split()) for part in (title, text)]
    write(
        "INSERT INTO ret_fts (rowid, prompt, completion) VALUES (%(id)s, %(title)s, %(text)s)",
        id=key,
        title=columns[0],
        text=columns[1],
    )
    write("INSERT INTO ret_snippet VALUES (%(id)s, %(model)s, 9, x'00')", id=key, model=model_id)
    write(
        "INSERT INTO ret_model VALUES (%(model)s, 1, 9, '1') "
        "ON CONFLICT (model_id) DO UPDATE SET snippets = snippets + 1, terms = terms + 9",
        model=model_id,
    )


def keep_vectors_then(model_id: int, ids: list[int]) -> None:
    rows = embed_passages(LOCAL_SPACE, [f"{title}\n\n{text}" for title, text in TEXTS.items()])
    sql = "INSERT INTO ret_space (model_id, name, dimensions) VALUES (%(model)s, 'multilingual-e5-small', 384)"
    space = write(sql, model=model_id)
    packed = np.array(ids, "<i8").tobytes()
    sql = "INSERT INTO ret_chunk (space_id, size, ids) VALUES (%(space)s, %(size)s, %(ids)s)"
    chunk = write(sql, space=space, size=len(ids), ids=packed)
    write("INSERT INTO ret_vectors VALUES (%(chunk)s, %(rows)s)", chunk=chunk, rows=rows.astype("<f4").tobytes())


def import_afresh(tenant) -> None:
    with activated(tenant):
        model = MLModel.objects.create(slug="support", name="Support")
        snippets.add_many(model, [TrainingSnippet(prompt=title, completion=TEXTS[title]) for title in TEXTS])
        vectors.vectorise_missing(model)


def answers_of(tenant, mode: str) -> list[list[tuple]]:
    """Return, for each question, the id and all scores of each hit."""
    with activated(tenant):
        model = MLModel.objects.get()
        asked = [retrieve(model, question, mode=mode) for question in QUESTIONS]
        assert not any(retrieved.degraded for retrieved in asked)
        return [
            [
                (hit.id, hit.bm25 or 0, hit.cosine or 0, hit.distance or 0, hit.fused_score or 0)
                for hit in retrieved.hits
            ]
            for retrieved in asked
        ]


@pytest.fixture
def brought_up_to_date(acme, globex):
    """Acme's store of the first version, migrated by the command and looked after by a worker that starts."""
    needs_local_embedder()
    make_first_version(acme)
    with pytest.raises(StoreNotReady, match="migrate_tenants"), activated(acme):
        pass
    call_command("migrate_tenants")
    rebuild_outdated_indexes()
    import_afresh(globex)
    return acme


@pytest.mark.parametrize("mode", ["keyword", "semantic", "hybrid"])
def test_it_gives_the_answers_of_a_fresh_import(brought_up_to_date, globex, mode):
    old, fresh = answers_of(brought_up_to_date, mode), answers_of(globex, mode)
    assert any(fresh)
    for ours, theirs in zip(old, fresh, strict=True):
        assert [hit[0] for hit in ours] == [hit[0] for hit in theirs]
        assert np.array(ours) == pytest.approx(np.array(theirs), abs=1e-5)


def test_its_index_is_what_a_rebuild_would_make_and_nothing_is_embedded_again(brought_up_to_date):
    with activated(brought_up_to_date):
        model = MLModel.objects.get()
        assert index.check_model(model.pk) == []
        assert vectors.vectorise_missing(model) == 0
