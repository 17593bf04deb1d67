"""Stores: one file a tenant, active only where it is activated, copied while in use, gone when deleted."""

import asyncio
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from django.conf import settings
from django.db import connections
from django.db.utils import ConnectionDoesNotExist, OperationalError

from models_app.models import MLModel, TrainingSnippet
from tenants.models import Tenant
from tenants.store import (
    NoActiveStore,
    StoreDamaged,
    StoreNotReady,
    activated,
    active_store,
    back_up_store,
    connection,
    create_store,
    delete_store,
    migrate_store,
    on_tenant_commit,
    set_aside,
    store_of,
    store_size_bytes,
    tenant_atomic,
    tenant_snapshot,
)
from tests.damage import damage_table


def test_without_an_active_store_everything_raises(acme):
    for use in (active_store, connection, tenant_atomic, lambda: on_tenant_commit(print), MLModel.objects.count):
        with pytest.raises(NoActiveStore):
            use()


def test_after_the_block_nothing_is_active_and_the_connection_is_given_back(acme):
    with activated(acme) as store:
        assert active_store() == store
        MLModel.objects.count()

    with pytest.raises(NoActiveStore):
        active_store()
    with pytest.raises(ConnectionDoesNotExist):
        connections[store.alias]


def test_a_block_that_fails_deactivates_the_store(acme):
    with pytest.raises(ZeroDivisionError), activated(acme):
        1 / 0  # noqa: B018
    with pytest.raises(NoActiveStore):
        active_store()


def test_rows_of_two_tenants_stay_apart(acme, globex):
    with activated(acme):
        MLModel.objects.create(slug="support", name="Acme's")
    with activated(globex):
        assert not MLModel.objects.exists()
        MLModel.objects.create(slug="support", name="Globex'")
    with activated(acme):
        assert [model.name for model in MLModel.objects.all()] == ["Acme's"]


def test_a_store_inside_another_leaves_the_outer_one_open(acme, globex):
    with activated(acme):
        MLModel.objects.create(slug="support", name="Support")
        with tenant_atomic():
            MLModel.objects.create(slug="sales", name="Sales")
            with activated(globex):
                assert MLModel.objects.count() == 0
                with activated(acme):
                    assert MLModel.objects.count() == 2
        assert MLModel.objects.count() == 2


def test_another_thread_has_nothing_active(acme, acme_store):
    def ask():
        with pytest.raises(NoActiveStore):
            MLModel.objects.count()
        with activated(acme):
            return MLModel.objects.count()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(ask).result() == 0


def test_opening_many_stores_leaves_djangos_table_of_databases_alone(acme, globex):
    for tenant in (acme, globex):
        with activated(tenant):
            MLModel.objects.count()
    assert list(connections) == ["default"]


async def test_a_step_of_a_stream_runs_on_the_store_it_carries(acme):
    with pytest.raises(NoActiveStore):
        active_store()
    assert await store_of(acme).run(lambda: active_store().slug) == "acme"
    with pytest.raises(NoActiveStore):
        active_store()


async def test_steps_of_two_streams_at_once_do_not_mix(acme, globex):
    async def steps(tenant):
        store = store_of(tenant)
        await store.run(MLModel.objects.create, slug=tenant.slug, name=tenant.name)
        await asyncio.sleep(0)
        return await store.run(lambda: [model.slug for model in MLModel.objects.all()])

    assert await asyncio.gather(steps(acme), steps(globex)) == [["acme"], ["globex"]]


def test_a_snapshot_shows_nothing_of_what_others_write_and_holds_nobody_up(acme_store):
    def write() -> None:
        with activated(acme_store):
            MLModel.objects.create(slug=f"model-{MLModel.objects.count()}", name="Model")

    with tenant_snapshot():
        before = MLModel.objects.count()
        with ThreadPoolExecutor() as others, tenant_snapshot():
            others.submit(write).result()
        assert MLModel.objects.count() == before
    assert MLModel.objects.count() == before + 1
    with tenant_atomic(), tenant_snapshot():
        write()
        assert MLModel.objects.count() == before + 2
    assert MLModel.objects.count() == before + 2


def test_what_is_written_in_a_snapshot_is_refused_and_it_ends_with_its_block(acme_store):
    model = {"slug": "support", "name": "Support"}
    with pytest.raises(OperationalError, match="readonly"), tenant_snapshot():
        MLModel.objects.create(**model)
    with pytest.raises(OperationalError, match="readonly"), tenant_snapshot(), tenant_atomic():
        MLModel.objects.create(**model)
    with pytest.raises(ZeroDivisionError), tenant_snapshot():
        1 / MLModel.objects.count()
    MLModel.objects.create(**model)


def test_a_transaction_that_fails_leaves_nothing_and_calls_nothing(acme_store):
    """Case Q03, in the store: what is to be sent on commit is sent once, and not at all after a roll-back."""
    called = []
    with pytest.raises(ZeroDivisionError), tenant_atomic():
        MLModel.objects.create(slug="support", name="Support")
        on_tenant_commit(lambda: called.append("rolled back"))
        1 / 0  # noqa: B018
    assert not MLModel.objects.exists()
    with tenant_atomic():
        on_tenant_commit(lambda: called.append("committed"))
        assert called == []
    assert called == ["committed"]


def test_opening_never_makes_a_file(acme):
    delete_store(acme)
    with pytest.raises(StoreNotReady, match="missing"), activated(acme):
        pass
    with pytest.raises(StoreNotReady, match="missing"):
        migrate_store(acme)
    assert not store_of(acme).path.exists()


def test_a_file_that_is_no_database_is_neither_opened_nor_backed_up(acme, tmp_path):
    store_of(acme).path.write_bytes(b"not a database, however long it is" * 100)
    with pytest.raises(StoreNotReady, match="broken"), activated(acme):
        pass
    with pytest.raises(StoreNotReady):
        back_up_store(acme, tmp_path / "acme.sqlite3")
    assert not list(tmp_path.iterdir())


def test_a_file_damaged_past_its_header_is_named_where_a_query_comes_upon_it(acme):
    with activated(acme):
        MLModel.objects.create(slug="support", name="Support")
    damage_table(store_of(acme), "models_app_trainingsnippet")
    with activated(acme):
        assert MLModel.objects.count() == 1
        with pytest.raises(StoreNotReady, match=r"its file is broken .*put a back-up"):
            list(TrainingSnippet.objects.all())
        with pytest.raises(StoreDamaged), tenant_atomic():
            TrainingSnippet.objects.create(model=MLModel.objects.get(), prompt="p", completion="c")
        assert MLModel.objects.count() == 1, "after the transaction that failed, too"


def test_a_damaged_index_can_be_made_anew_and_says_so(acme):
    with activated(acme), connection().cursor() as cursor:
        cursor.execute("DELETE FROM ret_fts_data")
        with pytest.raises(StoreDamaged, match=r"its index is broken .*rebuild_index acme"):
            cursor.execute("INSERT INTO ret_fts (ret_fts) VALUES ('integrity-check')")


def test_a_store_that_lacks_a_migration_is_closed_until_it_has_it(acme):
    with closing(sqlite3.connect(store_of(acme).path)) as file:
        file.execute("PRAGMA user_version = 1")
    with pytest.raises(StoreNotReady, match="migrate_tenants"), activated(acme):
        pass
    migrate_store(acme)
    with activated(acme):
        assert MLModel.objects.count() == 0


def test_making_a_store_twice_keeps_the_first(acme):
    with activated(acme):
        MLModel.objects.create(slug="support", name="Support")
    with pytest.raises(FileExistsError):
        create_store(acme)
    with activated(acme):
        assert MLModel.objects.count() == 1


def test_a_left_over_file_is_kept_under_another_name(acme):
    content = store_of(acme).path.read_bytes()
    aside = set_aside(acme)
    assert not store_of(acme).path.exists()
    assert aside.read_bytes() == content
    assert set_aside(acme) is None
    aside.unlink()


def test_deleting_a_store_removes_all_its_files(acme):
    with activated(acme):
        MLModel.objects.create(slug="support", name="Support")
        assert len(list(settings.STORES_DIR.glob(f"{acme.pk}.sqlite3*"))) > 1  # also the write-ahead log
        delete_store(acme)
    assert not list(settings.STORES_DIR.glob(f"{acme.pk}.sqlite3*"))


def test_size_counts_the_write_ahead_log(acme):
    with activated(acme) as store:
        before = store.path.stat().st_size
        MLModel.objects.create(slug="support", name="Support", greeting="a" * 500)
        assert store_size_bytes(acme) > before
    assert store_size_bytes(Tenant(pk=123_456, slug="none")) == 0


def test_a_back_up_taken_while_somebody_writes_is_whole(acme, tmp_path):
    """Each transaction writes two rows: a back-up that holds an odd number has cut one in half."""
    started, stop = threading.Event(), threading.Event()

    def write():
        with activated(acme):
            number = 0
            while not stop.is_set():
                number += 1
                with tenant_atomic():
                    for half in ("a", "b"):
                        MLModel.objects.create(slug=f"{half}{number}", name="Half")
                started.set()
            return number

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        assert started.wait(20)
        backups = [back_up_store(acme, tmp_path / f"{number}.sqlite3") for number in range(5)]
        stop.set()
        written = writer.result()

    counts = []
    for backup in backups:
        with closing(sqlite3.connect(backup)) as file:
            assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            counts.append(file.execute("SELECT count(*) FROM models_app_mlmodel").fetchone()[0])
    assert all(count % 2 == 0 for count in counts)
    assert counts == sorted(counts)
    assert 0 < counts[-1] <= written * 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{number}.sqlite3" for number in range(5)]


def test_a_back_up_put_in_the_stores_place_brings_everything_back(acme, tmp_path):
    with activated(acme):
        MLModel.objects.create(slug="support", name="Support")
    backup = back_up_store(acme, tmp_path / "acme.sqlite3")
    delete_store(acme)
    backup.rename(store_of(acme).path)
    with activated(acme):
        assert MLModel.objects.get().slug == "support"


def test_reading_then_writing_never_meets_a_locked_database(acme, case):
    """Case Q01: 20 threads, each 50 rounds of a transaction that reads first and writes then."""
    expected = case("Q01")["expected"]
    assert "1000 rows and 0 errors" in expected["statement"]

    def rounds(thread: int) -> int:
        with activated(acme):
            for number in range(50):
                with tenant_atomic():
                    seen = MLModel.objects.count()
                    MLModel.objects.create(slug=f"t{thread}-{number}", name=str(seen))
        return thread

    with ThreadPoolExecutor(20) as pool:
        assert sorted(pool.map(rounds, range(20))) == list(range(20))
    with activated(acme):
        names = sorted(int(model.name) for model in MLModel.objects.all())
    assert names == list(range(1_000))  # each round saw what all rounds before it wrote
