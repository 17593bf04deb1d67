"""A store that is cut short, garbage, or on a disk that is full or read-only: what the dashboard, API and commands say.

Keyword, and Hybrid too, go on answering where the file is whole.
"""

import io
import json
import sqlite3
from contextlib import closing

import pytest
import requests
from django.core.management import CommandError, call_command

from chat.answer import Asked, answer_now
from chat.models import QuestionCount, Session, Turn
from models_app import snippets
from models_app.models import MLModel
from tenants.models import ApiKey
from tenants.store import Store, activated
from tests.damage import full_disk, read_only
from tests.live import live_url  # noqa: F401

QUESTION = "When do you open?"
QUOTED = "> We open at 9."
PAGE = "/acme/models/support/"


@pytest.fixture
def store(acme) -> Store:
    """Acme's store, closed: its model "support" answers by words, and knows one thing and much beside it."""
    with activated(acme) as store:
        support = MLModel.objects.create(slug="support", name="Support", retrieval="keyword")
        snippets.add(support, "Opening hours", "We open at 9.", uri="https://ex.test/hours")
        for number in range(20):
            snippets.add(support, f"Note {number}", f"sentence {number} " * 500)
    return store


@pytest.fixture
def key(acme, store) -> str:
    return ApiKey.mint(tenant=acme, name="server", kind="secret", model_slugs=["support"])[1]


def cut_short(store: Store) -> None:
    """Leave the first half of the file, as a copy does that broke off."""
    with closing(sqlite3.connect(store.path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with store.path.open("r+b") as raw:
        raw.truncate(store.path.stat().st_size // 2)


def overwrite(store: Store) -> None:
    store.path.write_bytes(b"neither a database nor anything else " * 1_000)


def empty(store: Store) -> None:
    store.path.write_bytes(b"")


BROKEN = {cut_short: "its file is broken", overwrite: "its file is broken", empty: "its file is empty"}
broken = pytest.mark.parametrize(("damage", "reason"), list(BROKEN.items()), ids=[each.__name__ for each in BROKEN])


def not_writable(store: Store):
    return read_only(store.path)


def without_a_byte(store: Store):
    return full_disk()


unwritable = pytest.mark.parametrize("on_disk", [without_a_byte, not_writable])


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def ask_api(url: str, key: str, **options) -> requests.Response:
    body = {"model": "support", "messages": [{"role": "user", "content": QUESTION}]} | options
    return requests.post(
        f"{url}/v1/chat/completions", json=body, headers={"Authorization": f"Bearer {key}"}, timeout=30
    )


# --- A broken file ---------------------------------------------------------------------------------


@broken
def test_the_dashboard_says_what_is_wrong_with_a_broken_file_and_what_to_do(store, ann, browse, damage, reason):
    damage(store)
    answer = browse(ann).get(PAGE)
    assert answer.status_code == 503
    assert reason in answer.content.decode() and "put a back-up of it back in its place" in answer.content.decode()


@broken
def test_the_api_is_unavailable_in_openais_shape_where_the_file_is_broken(live_url, store, key, damage, reason, caplog):  # noqa: F811
    damage(store)
    answer = ask_api(live_url, key)
    assert answer.status_code == 503
    error = answer.json()["error"]
    assert (error["type"], error["code"]) == ("server_error", "workspace_unavailable")
    assert reason not in answer.text and reason in caplog.text


@broken
@pytest.mark.parametrize(
    "command",
    [
        ("search", "acme/support", QUESTION, "--retrieval", "keyword"),
        ("ask", "acme/support", QUESTION),
        ("rebuild_index", "acme"),
        ("vectorise", "acme/support"),
        ("backup_tenant", "acme"),
    ],
    ids=lambda command: command[0],
)
def test_a_command_says_in_one_line_what_is_wrong_with_a_broken_file(store, damage, reason, command):
    damage(store)
    with pytest.raises(CommandError, match=rf"{reason}.*put a back-up of it back in its place"):
        run(*command)


def test_an_empty_file_is_never_taken_for_a_new_store(store):
    empty(store)
    with pytest.raises(CommandError, match="acme"):
        run("migrate_tenants")
    assert store.path.stat().st_size == 0


# --- A disk that takes nothing ---------------------------------------------------------------------


@unwritable
def test_a_page_is_shown_and_what_is_to_be_saved_is_refused_with_the_reason(store, ann, browse, on_disk):
    member = browse(ann)
    with on_disk(store):
        assert "Opening hours" in member.get(PAGE).content.decode()
        plain = member.post("/acme/new-model/", {"name": "Second"})
        part = member.post("/acme/new-model/", {"name": "Second"}, headers={"HX-Request": "true"})
    assert plain.status_code == part.status_code == 503
    assert "see " in plain.content.decode() and "Nothing was changed" in plain.content.decode()
    assert "The data of tenant acme cannot be written" in json.loads(part["HX-Trigger"])["toast"]["text"]
    with activated(store):
        assert MLModel.objects.count() == 1


@pytest.mark.parametrize("session", [{}, {"metadata": {"session_id": "visitor-1"}}], ids=["alone", "session"])
def test_a_visitor_is_answered_through_the_api_and_the_log_says_what_is_lost(live_url, store, key, session, caplog):  # noqa: F811
    with full_disk():
        whole = ask_api(live_url, key, **session)
        streamed = ask_api(live_url, key, stream=True, **session)
    assert whole.status_code == streamed.status_code == 200, whole.text
    assert whole.json()["choices"][0]["message"]["content"].startswith(QUOTED)
    assert "We open at 9." in streamed.text and "error" not in streamed.text
    assert "neither counted nor logged nor remembered" in caplog.text
    with activated(store):
        assert not (Turn.objects.exists() or QuestionCount.objects.exists() or Session.objects.exists())


@unwritable
@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_a_question_is_answered_and_the_log_says_what_is_lost(store, on_disk, mode, caplog):
    with on_disk(store), activated(store):
        model = MLModel.objects.get()
        model.retrieval = mode
        asked = Asked(model=model, question=QUESTION, session_key="visitor-1")
        assert answer_now(asked).text.startswith(QUOTED)
        assert not (Turn.objects.exists() or QuestionCount.objects.exists() or Session.objects.exists())
    assert caplog.text.count("neither counted nor logged nor remembered") == 2, "when it is asked, and when it ends"


@unwritable
@pytest.mark.django_db(transaction=True)
def test_commands_that_read_do_and_one_that_writes_says_why_it_cannot(store, on_disk):
    search = ("search", "acme/support", QUESTION, "--retrieval", "keyword", "--json")
    with on_disk(store):
        assert json.loads(run(*search))["hits"][0]["title"] == "Opening hours"
        assert run("ask", "acme/support", QUESTION).startswith(QUOTED)
        with pytest.raises(CommandError, match=r"The data of tenant acme cannot be written: .*see w"):
            run("rebuild_index", "acme")
