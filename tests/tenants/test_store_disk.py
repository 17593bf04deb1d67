"""A store whose disk is full, read-only or failing: what can be read is read, and the rest says what to do."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from models_app.models import MLModel, TrainingSnippet
from tenants.store import (
    StoreDiskFails,
    activated,
    back_up_store,
    migrate_store,
    store_of,
    tenant_atomic,
    tenant_snapshot,
)
from tests.damage import full_disk, read_only

LONG_TEXT = "x" * 1_000_000


@pytest.fixture
def store(acme):
    """Acme's store, closed, with one model in it and no files beside it."""
    with activated(acme):
        MLModel.objects.create(slug="support", name="Support")
    return store_of(acme)


def names() -> list[str]:
    return list(MLModel.objects.order_by("pk").values_list("slug", flat=True))


def add_another() -> None:
    MLModel.objects.create(slug="other", name="Other")


def test_a_file_that_may_not_grow_says_that_the_disk_is_full_and_goes_on_answering(store, settings):
    init = f"{settings.SQLITE_OPTIONS['init_command']}; PRAGMA max_page_count = 1"  # no more than it has
    settings.SQLITE_OPTIONS = settings.SQLITE_OPTIONS | {"init_command": init}
    with activated(store):
        with pytest.raises(StoreDiskFails, match=r"disk is full .*free some space"), tenant_atomic():
            add_another()
            TrainingSnippet.objects.create(model=MLModel.objects.first(), prompt="long", completion=LONG_TEXT)
        assert names() == ["support"]


def test_without_a_byte_left_on_the_disk_the_store_is_read_and_the_log_says_why(store, caplog):
    with full_disk(), activated(store):
        assert names() == ["support"]
        with tenant_snapshot():
            assert names() == ["support"]
        with pytest.raises(StoreDiskFails, match=r"disk is full or fails .*free some space"), tenant_atomic():
            add_another()
        with pytest.raises(StoreDiskFails, match="free some space"):
            add_another()
        assert names() == ["support"]
    assert "free some space" in caplog.text and "Until then it is only read." in caplog.text
    with activated(store):
        add_another()
        assert names() == ["support", "other"], "as soon as there is room again"


def test_a_disk_that_fills_up_while_the_store_is_open_is_told_and_the_store_is_read(store):
    with activated(store):
        add_another()
        with full_disk():
            with pytest.raises(StoreDiskFails, match="free some space"):
                MLModel.objects.create(slug="third", name="Third")
            assert names() == ["support", "other"]


def test_what_a_killed_writer_left_beside_the_file_is_never_overlooked(store):
    Path(f"{store.path}-wal").write_bytes(b"x" * 100)
    with full_disk(), pytest.raises(StoreDiskFails, match="free some space"), activated(store):
        pass


@pytest.mark.parametrize("what", ["file", "folder", "both"])
def test_a_store_that_may_not_be_written_is_read_and_says_so_to_who_writes(store, what):
    path = store.path
    with read_only(*{"file": [path], "folder": [path.parent], "both": [path, path.parent]}[what]), activated(store):
        assert names() == ["support"]
        with pytest.raises(StoreDiskFails, match=r"cannot be written \(.*readonly.*Sitewise’s user write"):
            add_another()
        assert names() == ["support"]
    with activated(store):
        add_another()


def test_a_file_that_may_not_be_read_is_named_with_what_to_do(store):
    store.path.chmod(0o000)
    with (
        read_only(store.path),
        pytest.raises(StoreDiskFails, match=r"cannot be opened .*read and write"),
        activated(store),
    ):
        pass


def test_a_back_up_for_which_there_is_no_room_says_so_and_leaves_nothing(store, tmp_path):
    with full_disk(), pytest.raises(StoreDiskFails, match="free some space"):
        back_up_store(store, tmp_path / "acme.sqlite3")
    assert list(tmp_path.iterdir()) == []


def test_a_migration_for_which_there_is_no_room_says_so_and_is_made_later(store):
    with closing(sqlite3.connect(store.path)) as file:
        file.execute("PRAGMA user_version = 1")
    with full_disk(), pytest.raises(StoreDiskFails, match="free some space"):
        migrate_store(store)
    migrate_store(store)
    with activated(store):
        assert names() == ["support"]
