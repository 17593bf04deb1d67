"""The command import_site: to its end in one process, told as text or as one JSON document."""

import json
import os
import signal

import pytest
from django.core.management import CommandError, call_command

from crawler.crawl import new_import
from crawler.models import Import
from models_app.models import MLModel, Retrieval
from tenants.store import activated
from tests.conftest import needs_local_embedder
from tests.fakes.website import Answer, Request, Website, page

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def website():
    paths = {"/": page("Home", "/a", "/gone", "/doc"), "/a": page("Bread costs 3 euros")}
    with Website(paths | {"/doc": Answer(b"%PDF-1.7\n", content_type="application/pdf")}) as website:
        yield website


def import_site(target: str, website: Website | str, *options: str) -> None:
    address = website if isinstance(website, str) else website.url("/")
    call_command("import_site", target, address, "--retrieval", "keyword", *options)


def test_json_is_one_document_that_tells_all(acme, website, capsys):
    import_site("acme/support", website, "--json")
    report = json.loads(capsys.readouterr().out)
    assert report["state"] == "done"
    assert report["pages"] == {"done": 2, "failed": 1, "skipped": 1}
    assert (report["snippets"], report["vectors"]) == (2, 0)
    assert report["seconds"] >= 0
    assert [(page["url"], page["reason"]) for page in report["failed"]] == [(website.url("/gone"), "status 404")]
    assert [(page["url"], page["reason"]) for page in report["skipped"]] == [(website.url("/doc"), "not html: pdf")]


def test_text_names_pages_by_state_snippets_and_seconds(acme, website, capsys):
    import_site("acme/support", website)
    printed = capsys.readouterr().out
    assert "2  Imported" in printed
    assert "2  snippets in the model" in printed
    assert "seconds" in printed
    assert f"Failed: {website.url('/gone')} (status 404)" in printed


def test_the_model_is_made_with_the_defaults_and_kept_the_next_time(acme, website):
    call_command("import_site", "acme/my-shop", website.url("/"), "--retrieval", "keyword", "--json")
    with activated(acme):
        model = MLModel.objects.get()
        assert (model.slug, model.name, model.retrieval) == ("my-shop", "My shop", Retrieval.KEYWORD)
        assert (model.max_context_tokens, model.threshold, model.max_session_items) == (2_000, 0.3, 15)
        before = set(model.snippets.values_list("pk", flat=True))
    call_command("import_site", "acme/my-shop", website.url("/"))
    with activated(acme):
        assert MLModel.objects.get().retrieval == Retrieval.KEYWORD
        assert set(model.snippets.values_list("pk", flat=True)) == before


def test_another_retrieval_than_the_models_is_refused(acme, website):
    import_site("acme/support", website)
    import_site("acme/support", website)
    with pytest.raises(CommandError, match="is there already, with keyword retrieval"):
        call_command("import_site", "acme/support", website.url("/"), "--retrieval", "hybrid")
    with activated(acme):
        assert MLModel.objects.get().retrieval == Retrieval.KEYWORD
        assert Import.objects.count() == 2


def test_vectors_are_made_at_the_end_unless_the_model_is_keyword(acme, website, capsys):
    needs_local_embedder()
    call_command("import_site", "acme/support", website.url("/"), "--json")
    report = json.loads(capsys.readouterr().out)
    assert report["vectors"] == report["snippets"] == 2
    assert "2 with a vector" in report["message"]


def test_vectors_that_could_not_be_made_are_told_with_the_command_that_makes_them(acme, website, settings, capsys):
    settings.SITEWISE_EMBEDDING_URL, settings.SITEWISE_EMBEDDING_MODEL = "http://127.0.0.1:9/v1", "tiny"
    with pytest.raises(CommandError, match="vectors are still missing"):
        call_command("import_site", "acme/support", website.url("/"))
    assert "2  vectors to make: run `python manage.py vectorise acme/support`" in capsys.readouterr().out
    import_site("acme/words", website)
    assert "vectors to make" not in capsys.readouterr().out


def test_options_reach_the_import(acme, website):
    import_site("acme/support", website, "--max-pages", "1", "--no-images", "--source-url")
    with activated(acme):
        job = Import.objects.get()
        assert (job.max_pages, job.import_images, job.insert_source_url) == (1, False, True)
        assert job.model.snippets.get().completion.endswith(f"Source: {website.url('/')}")


@pytest.mark.parametrize(
    ("target", "address", "complaint"),
    [
        ("nobody/support", "127.0.0.1:9", "create_tenant nobody"),
        ("acme", "127.0.0.1:9", "Write TENANT/MODEL"),
        ("acme/", "127.0.0.1:9", "Write TENANT/MODEL"),
        ("acme/a/b", "127.0.0.1:9", "Write TENANT/MODEL"),
        ("acme/no good", "127.0.0.1:9", "cannot be a model's name"),
        ("acme/support", "ftp://ex.test", "no address of a website"),
        ("acme/support", "http://10.0.0.1/", "private address"),
    ],
)
def test_what_cannot_be_started_is_refused_in_a_clear_line(acme, target, address, complaint):
    with pytest.raises(CommandError, match=complaint):
        import_site(target, address)
    with activated(acme):
        assert not MLModel.objects.exists()


@pytest.mark.parametrize("pages", ["0", "-5", "9" * 30, "many"])
def test_a_limit_of_pages_that_is_none_is_refused(acme, pages):
    with pytest.raises(CommandError, match="--max-pages: it must be a whole number from 1"):
        import_site("acme/support", "127.0.0.1:9", f"--max-pages={pages}")


def test_a_failed_import_exits_non_zero_and_still_prints_its_report(acme, capsys):
    with Website() as website:
        gone = website.url("/")
    with pytest.raises(CommandError) as failure:
        import_site("acme/support", gone, "--json")
    report = json.loads(capsys.readouterr().out)
    assert (report["state"], report["message"]) == ("failed", str(failure.value))
    assert failure.value.returncode == 1


def test_a_running_import_of_the_model_is_named(acme, website):
    with activated(acme):
        new_import(MLModel.objects.create(slug="support", name="Support", retrieval="keyword"), website.url("/"))
    with pytest.raises(CommandError, match="running already"):
        import_site("acme/support", website)


def test_ctrl_c_stops_cleanly(acme, website, capsys):
    def interrupt(request: Request) -> str:
        os.kill(os.getpid(), signal.SIGINT)
        return page("Too late")

    website.paths["/a"] = interrupt
    with pytest.raises(CommandError) as failure:
        import_site("acme/support", website, "--json")
    assert failure.value.returncode == 130
    assert json.loads(capsys.readouterr().out)["state"] == "stopped"
    with activated(acme):
        job = Import.objects.get()
        assert (job.state, job.leased_until) == (Import.State.STOPPED, None)
