"""The command import_site for single pages, stored pages and the options of a crawl, and what it tells of changes."""

import json

import pytest
from django.core.management import CommandError, call_command

from crawler.models import Import
from tenants.store import activated
from tests.fakes.website import Website, page

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def website():
    paths = {"/": page("Home", "/a", "/b"), "/a": page("About", "/c"), "/b": page("Bread"), "/c": page("Contact")}
    with Website(paths) as website:
        yield website


@pytest.fixture
def run(acme, capsys):
    """Return the function that imports into acme/support and gives the report."""

    def import_site(*arguments: str) -> dict:
        call_command("import_site", "acme/support", *arguments, "--json")
        return json.loads(capsys.readouterr().out)

    return import_site


def test_several_urls_are_single_pages(acme, website, run):
    assert run(website.url("/a"), website.url("/b"), "--retrieval", "keyword")["pages"] == {"done": 2}
    with activated(acme):
        assert Import.objects.get().kind == Import.Kind.PAGES


def test_a_file_lists_single_pages(website, run, tmp_path):
    listed = tmp_path / "pages.txt"
    listed.write_text(f"# ours\n{website.url('/a')}\n\n{website.url('/b')}\n{website.url('/a')}\n")
    assert run("--pages-from", str(listed), "--retrieval", "keyword")["pages"] == {"done": 2}


def test_the_second_report_says_what_changed(website, run):
    first = run(website.url("/"), "--retrieval", "keyword")
    assert first["changes"]["pages"] == {"checked": 4, "new": 4, "changed": 0, "same": 0, "gone": 0}
    website.paths["/b"] = page("Bread and butter")
    second = run(website.url("/"))
    assert second["changes"]["pages"] == {"checked": 4, "new": 0, "changed": 1, "same": 3, "gone": 0}
    assert second["usage"]["calls"] == 0
    assert "Of 4 pages checked: 1 changed, 3 as before." in second["message"]


def test_text_tells_the_changes(acme, website, capsys):
    call_command("import_site", "acme/support", website.url("/"), "--retrieval", "keyword")
    assert "Pages: 4 checked, 4 new, 0 changed, 0 same, 0 gone" in capsys.readouterr().out


def test_stored_pages_are_split_again(website, run):
    run(website.url("/"), "--retrieval", "keyword")
    asked = len(website.requests)
    assert run("--split-again")["pages"] == {"done": 4}
    assert len(website.requests) == asked


def test_paths_and_depth_reach_the_import(acme, website, run):
    report = run(website.url("/"), "--exclude", "/b", "--exclude", "/x", "--max-depth", "1", "--retrieval", "keyword")
    assert report["pages"] == {"done": 2, "skipped": 2}
    run(website.url("/"), "--include", "/a", "--documents")
    with activated(acme):
        newest, first = Import.objects.all()
        assert (first.exclude_paths, first.max_depth, first.imports_documents) == ("/b\n/x", 1, False)
        assert (newest.include_paths, newest.max_depth, newest.imports_documents) == ("/a", None, True)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "Name the URL"),
        (["127.0.0.1:9", "--split-again"], "leave the URLs out"),
        (["--split-again"], "No page of this model is stored"),
        (["--pages-from", "no/such/file"], "cannot be read"),
        (["127.0.0.1:9", "--include", "help"], "--include: "),
        (["127.0.0.1:9", "--max-depth", "-1"], "--max-depth"),
        (["ftp://ex.test/", "mailto:a@ex.test"], "no address of a website"),
    ],
)
def test_what_cannot_be_started_is_refused_in_a_clear_line(acme, arguments, complaint):
    with pytest.raises(CommandError, match=complaint):
        call_command("import_site", "acme/support", *arguments)
    with activated(acme):
        assert not Import.objects.exists()
