"""Files as an import's source: what becomes of them, what replaces what, and how an import goes on that was killed."""

import json
import re

import pytest
from django.urls import reverse
from django.utils.html import strip_tags

from crawler.crawl import import_site, new_import, start_split
from crawler.models import Import, Page, Upload
from crawler.upload import forget_stale_uploads
from models_app import snippets
from models_app.jobs import JobFailed, JobStopped, perform_taken
from models_app.models import TrainingSnippet
from tests.fakes.documents import make_pdf, make_xlsx, pdf_page

FAQ = b"question,answer\nWhen do you open?,At nine.\nIs it free?,Yes.\n"
FAQ_COLUMNS = {"prompt": "question", "completion": "answer"}


@pytest.fixture
def model(support):
    support.retrieval = "keyword"
    support.save()
    return support


def upload(model, name, body, kind, **options) -> Upload:
    return Upload.objects.create(model=model, name=name, kind=kind, body=body, options=options)


def start(model, *uploads) -> Import:
    job = new_import(model, uploads[0].name, kind=Import.Kind.FILES, max_pages=len(uploads))
    Upload.objects.filter(pk__in=[each.pk for each in uploads]).update(job=job)
    return Import.take(job.pk)


def run(model, *uploads) -> Import:
    job = start(model, *uploads)
    perform_taken(job, import_site)
    job.refresh_from_db()
    return job


def texts(model) -> list[tuple[str, str, str]]:
    return list(model.snippets.values_list("prompt", "completion", "uri"))


def test_a_document_becomes_snippets_under_its_name(model):
    job = run(model, upload(model, "hours.pdf", make_pdf(pdf_page("We open at nine.")), "pdf"))
    assert job.state == "done", job.message
    assert texts(model) == [("hours", "We open at nine.", "hours.pdf")]
    snippet = TrainingSnippet.objects.get()
    assert snippet.source == "upload"
    page = Page.objects.get()
    assert (page.url, page.kind, page.state, page.snippet_count) == ("hours.pdf", "pdf", "done", 1)
    assert Upload.objects.get().body == b""


def test_rows_become_snippets_as_they_are(model):
    job = run(model, upload(model, "faq.csv", FAQ, "csv", **FAQ_COLUMNS))
    assert job.state == "done", job.message
    assert texts(model) == [("When do you open?", "At nine.", "faq.csv"), ("Is it free?", "Yes.", "faq.csv")]
    assert Page.objects.get().snippet_count == 2


def test_a_file_of_the_same_name_replaces_what_came_from_it(model):
    run(model, upload(model, "faq.csv", FAQ, "csv", **FAQ_COLUMNS))
    kept = TrainingSnippet.objects.get(prompt="Is it free?")
    other = FAQ.replace(b"At nine.", b"At ten.")
    job = run(model, upload(model, "faq.csv", other, "csv", **FAQ_COLUMNS))
    assert texts(model)[0] == ("When do you open?", "At ten.", "faq.csv")
    assert TrainingSnippet.objects.get(prompt="Is it free?").pk == kept.pk
    assert job.changes["snippets"]["changed"] == 1


def test_a_document_uploaded_again_without_a_change_writes_nothing(model):
    body = make_pdf(pdf_page("We open at nine."))
    run(model, upload(model, "hours.pdf", body, "pdf"))
    before = TrainingSnippet.objects.values().get()
    job = run(model, upload(model, "hours.pdf", body, "pdf"))
    assert TrainingSnippet.objects.values().get() == before
    assert job.changes["pages"]["same"] == 1


def test_what_the_owner_edited_survives_a_new_file(model):
    run(model, upload(model, "faq.csv", FAQ, "csv", **FAQ_COLUMNS))
    row = TrainingSnippet.objects.get(prompt="When do you open?")
    snippets.edit(row, row.prompt, "At nine, but not on Sundays.", row.uri)
    run(model, upload(model, "faq.csv", FAQ.replace(b"At nine.", b"At ten."), "csv", **FAQ_COLUMNS))
    row.refresh_from_db()
    assert row.completion == "At nine, but not on Sundays."
    assert (row.conflict, row.new_completion) == ("changed", "At ten.")


def test_what_the_owner_deleted_stays_away_from_a_new_file(model):
    rows = b"question,answer\nHours?,At nine.\nFree?,Yes.\n"
    run(model, upload(model, "faq.csv", rows, "csv"))
    snippets.delete(model, [model.snippets.get(prompt="Free?").pk])
    run(model, upload(model, "faq.csv", rows, "csv"))
    assert [prompt for prompt, *_ in texts(model)] == ["Hours?"]
    run(model, upload(model, "faq.csv", rows.replace(b"Yes.", b"No."), "csv"))
    assert [prompt for prompt, *_ in texts(model)] == ["Hours?", "Free?"]


def test_a_deleted_row_of_a_long_file_stays_away(model):
    run(model, upload(model, "faq.csv", many(600), "csv"))
    assert snippets.delete(model, model.snippets.filter(position=7).values_list("pk", flat=True)) == 1
    run(model, upload(model, "faq.csv", many(600), "csv"))
    assert model.snippets.count() == 599


def test_a_deleted_row_with_an_address_of_its_own_stays_away(model):
    rows = b"title,text,url\nA,a,https://acme.test/1\nB,b,https://acme.test/2\n"
    columns = {"prompt": "title", "completion": "text", "uri": "url"}
    run(model, upload(model, "faq.csv", rows, "csv", **columns))
    snippets.delete(model, [model.snippets.get(prompt="A").pk])
    run(model, upload(model, "faq.csv", rows, "csv", **columns))
    assert [prompt for prompt, *_ in texts(model)] == ["B"]


def test_what_a_new_file_has_no_more_comes_back_with_a_later_one(model):
    whole = many(600)
    run(model, upload(model, "faq.csv", whole, "csv"))
    run(model, upload(model, "faq.csv", many(550), "csv"))
    run(model, upload(model, "faq.csv", whole, "csv"))
    assert model.snippets.count() == 600


def test_rows_with_addresses_are_replaced_by_their_file_and_no_other(model):
    columns = {"prompt": "title", "completion": "text", "uri": "url"}
    one = [{"title": "A", "text": "a", "url": "https://acme.test/1"}, {"title": "B", "text": "b", "url": ""}]
    two = [{"title": "C", "text": "c", "url": "https://acme.test/1"}]
    run(model, upload(model, "one.json", json.dumps(one).encode(), "json", **columns))
    run(model, upload(model, "two.json", json.dumps(two).encode(), "json", **columns))
    assert {prompt for prompt, *_ in texts(model)} == {"A", "B", "C"}
    one[0] |= {"title": "D", "text": "d"}
    run(model, upload(model, "one.json", json.dumps(one).encode(), "json", **columns))
    assert {prompt for prompt, *_ in texts(model)} == {"B", "C", "D"}


def test_many_rows_are_replaced_too(model):
    def rows(count, changed=()):
        lines = (f"Question {n}?,{'New' if n in changed else 'Old'} answer {n}" for n in range(count))
        return ("question,answer\n" + "\n".join(lines)).encode()

    run(model, upload(model, "faq.csv", rows(1_200), "csv", **FAQ_COLUMNS))
    assert model.snippets.count() == 1_200
    job = run(model, upload(model, "faq.csv", rows(1_100, changed=[7]), "csv", **FAQ_COLUMNS))
    assert model.snippets.count() == 1_100
    assert model.snippets.get(prompt="Question 7?").completion == "New answer 7"
    assert job.changes["snippets"]["removed"] == 101


def many(count, **changed):
    """Rows of a file that is too long to be replaced at once; `q7="text"` is another answer to that question."""
    lines = (f"Question {n}?,{changed.get(f'q{n}', f'Old answer {n}')}" for n in range(count))
    return ("question,answer\n" + "\n".join(lines)).encode()


def edit(model, prompt, completion) -> TrainingSnippet:
    row = model.snippets.get(prompt=prompt)
    return snippets.edit(row, row.prompt, completion, row.uri)


def test_an_edited_row_of_a_long_file_asks_when_its_row_changes_or_goes(model):
    run(model, upload(model, "faq.csv", many(600), "csv", **FAQ_COLUMNS))
    changed, gone = edit(model, "Question 7?", "Mine of 7."), edit(model, "Question 599?", "Mine of 599.")
    same = edit(model, "Question 8?", "Mine of 8.")
    for _ in range(2):  # the second time nothing is asked anew, and nothing comes in twice
        job = run(model, upload(model, "faq.csv", many(599, q7="New answer"), "csv", **FAQ_COLUMNS))
        assert job.state == "done", job.message
        assert model.snippets.count() == 600
        asked = model.snippets.filter(is_edited=True).values_list("pk", "completion", "conflict", "new_completion")
        assert set(asked) == {
            (changed.pk, "Mine of 7.", "changed", "New answer"),
            (gone.pk, "Mine of 599.", "gone", ""),
            (same.pk, "Mine of 8.", "", ""),
        }
    assert [job.changes["snippets"]["conflicts"] for job in Import.objects.all()] == [0, 2, 0]
    run(model, upload(model, "faq.csv", many(600), "csv", **FAQ_COLUMNS))
    assert model.snippets.count() == 600
    assert not model.snippets.exclude(conflict="").exists()


def test_an_edited_row_with_an_address_asks_too_but_not_about_another_file(model):
    columns = {"prompt": "title", "completion": "text", "uri": "url"}

    def send(name, *texts):
        rows = [{"title": text[0], "text": text, "url": "https://acme.test/1"} for text in texts]
        run(model, upload(model, name, json.dumps(rows).encode(), "json", **columns))

    send("one.json", "A1", "B1")
    send("two.json", "C1")
    for title in "ABC":
        edit(model, title, f"Mine of {title}.")
    send("one.json", "A2", "D1")
    asked = dict(model.snippets.values_list("prompt", "conflict"))
    assert asked == {"A": "changed", "B": "gone", "C": "", "D": ""}
    snippets.resolve(model.snippets.get(prompt="A"), "mine")
    send("one.json", "A2", "D1")
    send("one.json", "A3", "D1")
    assert model.snippets.get(prompt="A").new_completion == "A3"
    assert model.snippets.count() == 4


def test_rows_without_a_choice_are_read_as_their_names_suggest(model):
    run(model, upload(model, "faq.csv", FAQ, "csv"))
    assert texts(model)[1] == ("Is it free?", "Yes.", "faq.csv")
    run(model, upload(model, "odd.csv", b"x,y,z\n1,2,3\n", "csv"))
    assert "None of its columns was chosen" in Page.objects.get(url="odd.csv").report["message"]


def test_files_outlast_a_split_of_all_that_is_stored(model):
    run(model, upload(model, "hours.pdf", make_pdf(pdf_page("We open at nine.")), "pdf"))
    run(model, upload(model, "faq.csv", FAQ, "csv", **FAQ_COLUMNS))
    before = set(model.snippets.values_list("pk", "source", "uri"))
    job = Import.take(start_split(model).pk)
    perform_taken(job, import_site)
    job.refresh_from_db()
    assert job.state == "done", job.message
    assert set(model.snippets.values_list("pk", "source", "uri")) == before


def test_the_source_of_a_file_is_its_name(model):
    uploaded = upload(model, "hours.txt", b"We open at nine.", "text")
    job = start(model, uploaded)
    Import.objects.filter(pk=job.pk).update(insert_source_url=True)
    job.refresh_from_db()
    perform_taken(job, import_site)
    assert TrainingSnippet.objects.get().completion == "We open at nine.\n\nSource: hours.txt"


def test_an_import_of_files_tells_of_files_and_rows(model, browse, ann):
    document, rows = upload(model, "hours.txt", b"We open at nine.", "text"), upload(model, "faq.csv", FAQ, "csv")
    waiting = new_import(model, "hours.txt", kind=Import.Kind.FILES, max_pages=2)
    Upload.objects.filter(pk__in=[document.pk, rows.pk]).update(job=waiting)
    browser, arguments = browse(ann), ["acme", model.slug, waiting.pk]

    def shown(name, *arguments):
        headers = {"HX-Request": "true"} if name == "import_job" else {}
        return browser.get(reverse(f"crawler:{name}", args=arguments), headers=headers).content.decode()

    running = shown("import_job", *arguments)
    assert "<dt>files</dt><dd>2</dd>" in running and "Reading files" in running
    perform_taken(Import.take(waiting.pk), import_site)
    waiting.refresh_from_db()
    assert waiting.message == "2 files imported with 2 rows. The model has 3 snippets."
    for name in ("import_job", "import_report"):
        told = strip_tags(shown(name, *arguments))
        assert "files checked" in told
        assert not re.search(r"\bpages?\b", told, re.IGNORECASE), told
    assert "2 files" in shown("import_list", *arguments[:2])


def test_one_bad_file_fails_alone_and_says_why(model):
    good = upload(model, "hours.txt", b"We open at nine.", "text")
    bad = upload(model, "broken.pdf", b"%PDF-1.4 nothing", "pdf")
    job = run(model, bad, good)
    assert job.state == "done", job.message
    failed = Page.objects.get(url="broken.pdf")
    assert failed.state == "failed"
    assert failed.report["message"] == "broken.pdf is damaged, or no PDF."


def test_an_import_of_nothing_that_can_be_read_fails_with_the_reason(model):
    job = start(model, upload(model, "broken.pdf", b"%PDF-1.4 nothing", "pdf"))
    with job.leased() as lease, pytest.raises(JobFailed, match=r"No file could be read\. broken\.pdf is damaged"):
        import_site(job, lease)


def test_a_killed_import_goes_on_where_it_was(model):
    first = upload(model, "one.txt", b"We open at nine.", "text")
    second = upload(model, "two.csv", FAQ, "csv", **FAQ_COLUMNS)
    job = start(model, first, second)

    def kill(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), job.leased() as lease:
        import_site(job, lease, kill)
    assert Page.objects.get().url == "one.txt"
    Import.objects.update(leased_until=None)
    taken = Import.take(job.pk)
    perform_taken(taken, import_site)
    taken.refresh_from_db()
    assert taken.state == "done", taken.message
    assert model.snippets.count() == 3
    assert Page.objects.count() == 2


def test_a_stopped_import_writes_no_more(model):
    job = start(model, upload(model, "faq.csv", FAQ, "csv", **FAQ_COLUMNS))
    job.request_stop()
    with job.leased() as lease, pytest.raises(JobStopped):
        import_site(job, lease)
    assert not model.snippets.exists()


def test_our_own_export_comes_back_as_it_was(model):
    fields = {"prompt": "A", "completion": "a", "uri": "https://acme.test/", "source": "manual", "position": 3}
    rest = {"is_edited": False, "source_prompt": "", "source_completion": ""}
    line = json.dumps(fields | rest | {"conflict": "", "new_prompt": "", "new_completion": ""})
    run(model, upload(model, "snippets.jsonl", line.encode(), "jsonl"))
    row = TrainingSnippet.objects.get()
    assert (row.prompt, row.uri, row.source, row.position) == ("A", "https://acme.test/", "manual", 3)


def test_a_full_workspace_says_so(model, acme):
    acme.snippet_quota = 1
    acme.save()
    job = run(model, upload(model, "faq.csv", FAQ, "csv", **FAQ_COLUMNS))
    assert job.state == "failed"
    assert "holds its 1 snippets" in job.message


def test_markup_in_a_sheet_stays_text(model):
    body = make_xlsx(Prices=[["Bike", "Note"], ["City", "<script>alert(1)</script> | more"]])
    run(model, upload(model, "prices.xlsx", body, "xlsx"))
    text = TrainingSnippet.objects.get().completion
    assert "\\<script>" in text
    assert "\\| more" in text


def test_files_that_nobody_confirmed_are_forgotten_and_read_ones_emptied(model):
    Upload.objects.create(model=model, name="new.txt", kind="text", body=b"x")
    old = Upload.objects.create(model=model, name="old.txt", kind="text", body=b"x")
    Upload.objects.filter(pk=old.pk).update(created_at="2026-01-01T00:00Z")
    job = Import.objects.create(model=model, kind="files", state="stopped", address="a", max_pages=1)
    left = Upload.objects.create(model=model, job=job, name="left.txt", kind="text", body=b"x")
    forget_stale_uploads()
    assert not Upload.objects.filter(name="old.txt").exists()
    assert Upload.objects.filter(name="new.txt").exists()
    left.refresh_from_db()
    assert left.body == b""
