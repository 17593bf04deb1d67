"""manage.py rebuild_index: what was wrong, and that it no longer is."""

import io
import json

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from models_app import index, snippets
from models_app.index.connection import rows, write
from models_app.models import MLModel, TrainingSnippet
from models_app.retrieval import retrieve
from tenants.store import activated, store_of
from tests.damage import damage_table


def run(target: str, *options: str) -> list[dict]:
    return report(target, *options)["models"]


def report(target: str, *options: str) -> dict:
    out = io.StringIO()
    call_command("rebuild_index", target, *options, json=True, stdout=out)
    return json.loads(out.getvalue())


def said(target: str, *options: str) -> str:
    out = io.StringIO()
    call_command("rebuild_index", target, *options, stdout=out)
    return out.getvalue()


@pytest.mark.parametrize("target", ["acme", "acme/support"])
def test_an_index_that_differs_is_reported_and_mended(support, target):
    snippet = snippets.add(support, "Returns", "Send it back")
    index.put_vectors(support.pk, "some-space", [snippet.pk], np.array([[1, 0]], np.float32))
    TrainingSnippet.objects.filter(pk=snippet.pk).update(embedded_in="some-space", completion="Keep it")
    [report] = run(target)
    assert (report["model"], report["snippets"], report["left"], report["vectors_to_make"]) == ("support", 1, [], 0)
    assert any("another text" in problem for problem in report["found"])
    assert [hit.id for hit in retrieve(support, "keep", mode="keyword").hits] == [snippet.pk]
    assert run(target)[0]["found"] == []


def test_a_snippet_that_lost_its_vector_is_vectorised_again(support):
    snippet = snippets.add(support, "Returns", "Send it back")
    TrainingSnippet.objects.filter(pk=snippet.pk).update(embedded_in="multilingual-e5-small")
    assert not snippets.missing_vectors(support).exists()
    [report] = run("acme/support")
    assert report["vectors_to_make"] == 1
    assert snippets.missing_vectors(support).get() == snippet


@pytest.mark.parametrize("target", ["acme", "acme/support"])
def test_a_damaged_table_is_mended_whatever_is_rebuilt(support, target):
    snippet = snippets.add(support, "Returns", "Send it back")
    write("UPDATE ret_fts_data SET block = x'00ff00ff' WHERE id > 10")
    told = report(target)
    assert "damaged" in told["store"]["found"][0]
    assert (told["store"]["left"], told["models"][0]["left"]) == ([], [])
    assert [hit.id for hit in retrieve(support, "back", mode="keyword").hits] == [snippet.pk]


def test_a_check_alone_says_what_is_wrong_and_what_to_run_and_changes_nothing(support, capsys):
    snippet = snippets.add(support, "Returns", "Send it back")
    TrainingSnippet.objects.filter(pk=snippet.pk).update(completion="Keep it")
    before = rows("SELECT id, hex(block) FROM ret_fts_data"), rows("SELECT id, hex(digest) FROM ret_snippet")
    with pytest.raises(CommandError, match=r"differs .*manage.py rebuild_index acme/support$"):
        call_command("rebuild_index", "acme/support", check=True)
    out = capsys.readouterr().out
    assert "nothing was changed" in out
    assert "0 of 1 snippets" in out
    assert "wrong: 1 snippets were indexed with another text" in out
    assert (rows("SELECT id, hex(block) FROM ret_fts_data"), rows("SELECT id, hex(digest) FROM ret_snippet")) == before
    run("acme/support")
    assert run("acme", "--check")[0]["found"] == []


def test_the_report_counts_what_agrees_with_an_index_made_from_scratch(support):
    first = snippets.add(support, "Returns", "Send it back")
    snippets.add(support, "Hours", "Open from nine")
    index.put_vectors(support.pk, "some-space", [first.pk, first.pk], np.eye(2, dtype=np.float32))
    TrainingSnippet.objects.filter(pk=first.pk).update(completion="Send them back")
    [told] = run("acme/support")
    assert told["agreed"]["snippets"] == {"count": 2, "agreeing": 1}
    assert told["agreed"]["terms"]["agreeing"] < told["agreed"]["terms"]["count"]
    terms = told["agree"]["terms"]["count"]
    assert told["agree"] == {
        "snippets": {"count": 2, "agreeing": 2},
        "terms": {"count": terms, "agreeing": terms},
        "vectors": {"count": 2, "agreeing": 2},
    }
    text = said("acme")
    assert f"support: 2 of 2 snippets, {terms} of {terms} terms, 2 of 2 vectors" in text
    assert "no fault" in text


def test_a_broken_vector_is_dropped_and_the_next_step_is_named(support):
    kept, broken = (snippets.add(support, title, "Send it back") for title in ("Kept", "Broken"))
    space = "multilingual-e5-small"
    index.put_vectors(support.pk, space, [kept.pk, broken.pk], np.eye(2, dtype=np.float32))
    TrainingSnippet.objects.update(embedded_in=space)
    not_a_number = np.array([[1, 0], [np.nan, 0]], np.float32).tobytes()
    write("UPDATE ret_vectors SET vectors = %(vectors)s", vectors=not_a_number)
    text = said("acme/support")
    assert "mended: Chunk" in text
    assert "1 snippets have lost their vectors" in text
    assert "run `manage.py vectorise acme/support`" in text
    assert snippets.missing_vectors(support).get() == broken
    assert index.ids_with_vectors(support.pk, space).tolist() == [kept.pk]


def test_snippets_that_cannot_be_read_leave_the_index_as_it_was(acme):
    with activated(acme):
        snippets.add(MLModel.objects.create(slug="support", name="Support"), "Returns", "Send it back")
    damage_table(store_of(acme), "models_app_trainingsnippet")
    with pytest.raises(CommandError, match=r"acme.* stays as it was.*put a back-up"):
        run("acme")
    with activated(acme):
        assert rows("SELECT count(*) FROM ret_snippet") == [(1,)]
        assert rows("SELECT count(*) FROM ret_term")[0][0] > 0


def test_a_tenant_without_models_has_its_store_checked_all_the_same(acme):
    assert "The tenant has no models." in said("acme")
    with activated(acme):
        write("INSERT INTO ret_vectors (chunk_id, vectors) VALUES (99, zeroblob(8))")
    with pytest.raises(CommandError, match=r"rebuild_index acme$"):
        said("acme", "--check")
    assert "mended: 1 sets of vectors belong to no model." in said("acme")


def test_an_unknown_target_is_named(acme):
    with pytest.raises(CommandError, match="nobody"):
        run("nobody")
    with pytest.raises(CommandError, match="no model “none”"):
        run("acme/none")
