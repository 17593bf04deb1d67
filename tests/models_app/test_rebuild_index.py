"""manage.py rebuild_index: what was wrong, and that it no longer is."""

import io
import json

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from models_app import index, snippets
from models_app.index.connection import write
from models_app.models import TrainingSnippet
from models_app.retrieval import retrieve


def run(target: str) -> list[dict]:
    out = io.StringIO()
    call_command("rebuild_index", target, json=True, stdout=out)
    return json.loads(out.getvalue())["models"]


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


def test_a_damaged_table_is_mended_with_the_whole_store(support):
    snippets.add(support, "Returns", "Send it back")
    write("UPDATE ret_fts_data SET block = x'00ff00ff' WHERE id > 10")
    with pytest.raises(CommandError, match=r"rebuild_index acme$"):
        run("acme/support")
    [report] = run("acme")
    assert "damaged" in report["found"][0]
    assert report["left"] == []


def test_an_unknown_target_is_named(acme):
    with pytest.raises(CommandError, match="nobody"):
        run("nobody")
    with pytest.raises(CommandError, match="no model “none”"):
        run("acme/none")
