"""The dialogs for files: chosen, previewed, corrected, started or discarded."""

import json
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from crawler.models import Import, Upload
from crawler.previews import file_name, preview, take_in
from models_app.models import TrainingSnippet
from tests.fakes.documents import make_docx, make_pdf, pdf_page, scanned_pdf, word_paragraph

HTMX = {"HX-Request": "true"}
FAQ = b"question,answer,page\nWhen do you open?,At nine.,\nIs it free?,Yes.,\n"


def address(name):
    return reverse(f"crawler:{name}", args=["acme", "support"])


@pytest.fixture
def ann_browser(browse, ann):
    return browse(ann)


@pytest.fixture
def send(support, ann_browser):
    """Return the function that posts files and fields to the preview, and gives the page."""

    def post(*files, **fields):
        sent = [SimpleUploadedFile(name, body) for name, body in files]
        return ann_browser.post(address("upload_preview"), {"files": sent, **fields}, headers=HTMX).content.decode()

    return post


def test_the_dialog_names_what_is_read(support, ann_browser):
    page = ann_browser.get(address("upload_dialog"), headers=HTMX).content.decode()
    assert "Word (.docx)" in page
    assert "multiple" in page
    assert "multipart/form-data" in page


def test_a_preview_shows_what_would_come_and_writes_no_snippet(send):
    page = send(("hours.pdf", make_pdf(pdf_page("We open at nine."))), ("faq.csv", FAQ))
    assert "PDF, 1 page" in page
    assert "We open at nine." in page
    assert "CSV table, 2 rows" in page
    assert "When do you open?" in page
    assert re.search(r'name="completion-\d+"', page)
    assert '<option value="answer" selected>' in page
    assert not TrainingSnippet.objects.exists()
    assert not Import.objects.exists()


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        ("empty.pdf", b" ", "empty.pdf is empty."),
        ("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "old.doc has the format of Office before 2007"),
        ("photo.jpg", b"\xff\xd8\xff" + bytes(600), "photo.jpg is of a kind that is not read"),
    ],
)
def test_a_file_that_is_not_read_is_refused_and_the_others_stay(send, name, body, said):
    page = send((name, body), ("faq.csv", FAQ))
    assert said in page
    assert "CSV table, 2 rows" in page
    assert [upload.name for upload in Upload.objects.all()] == ["faq.csv"]


def test_what_is_wrong_inside_a_file_is_said_beside_it(send):
    page = send(("scan.pdf", scanned_pdf()), ("secret.pdf", make_pdf(pdf_page("x"), password="pass")))
    assert "It has no text layer" in page
    assert "It is password protected" in page


def test_a_file_above_the_limit_is_refused(send, settings):
    settings.SITEWISE_MAX_UPLOAD_BYTES = 1_000
    page = send(("big.txt", b"word " * 300))
    assert "big.txt is too large" in page
    assert not Upload.objects.exists()


def test_more_than_ten_files_are_refused_by_name(send):
    page = send(*[(f"{number}.txt", b"text") for number in range(11)])
    assert "10.txt is one too many" in page
    assert Upload.objects.count() == 10


def test_of_two_files_of_one_name_the_first_is_kept_and_the_second_refused(send):
    page = send(("same.txt", b"We open at nine."), ("same.txt", b"We close at six."), ("other.txt", b"By bus."))
    assert "Two of the files are called same.txt: rename one of them." in page
    assert {upload.name: bytes(upload.body) for upload in Upload.objects.all()} == {
        "same.txt": b"We open at nine.",
        "other.txt": b"By bus.",
    }


def test_a_name_is_free_again_where_its_first_file_was_refused(send):
    page = send(("same.txt", b" "), ("same.txt", b"We close at six."))
    assert "Two of the files" not in page
    assert bytes(Upload.objects.get().body) == b"We close at six."


def test_files_are_added_to_those_that_are_there_and_left_out(send):
    send(("one.txt", b"We open at nine."))
    one = Upload.objects.get()
    page = send(("two.txt", b"We close at six."), upload=one.pk)
    assert "one.txt" in page
    assert "two.txt" in page
    two = Upload.objects.get(name="two.txt")
    page = send(upload=[one.pk, two.pk], remove=one.pk)
    assert "one.txt" not in page
    assert not Upload.objects.filter(pk=one.pk).exists()


def test_another_column_changes_the_preview_and_is_kept(send):
    send(("faq.csv", FAQ))
    key = Upload.objects.get().pk
    chosen = {f"prompt-{key}": "answer", f"completion-{key}": "question", f"uri-{key}": ""}
    page = send(upload=key, **chosen)
    assert "<strong>At nine.</strong>" in page
    assert Upload.objects.get().options == {"prompt": "answer", "completion": "question", "uri": ""}


def test_a_start_without_a_column_of_texts_leads_back(support, ann_browser):
    take_in(support, "odd.csv", b"x,y,z\n1,2,3\n")
    upload = Upload.objects.get()
    page = ann_browser.post(address("upload_start"), {"upload": upload.pk}, headers=HTMX).content.decode()
    assert "Choose the column that holds the texts" in page
    assert not Import.objects.exists()


def test_a_start_with_a_file_that_cannot_be_read_leads_back(send, ann_browser):
    send(("scan.pdf", scanned_pdf()), ("hours.txt", b"We open at nine."))
    keys = list(Upload.objects.values_list("pk", flat=True))
    page = ann_browser.post(address("upload_start"), {"upload": keys}, headers=HTMX).content.decode()
    assert "Nothing was imported yet" in page
    assert "no text layer" in page
    assert not Import.objects.exists()


def test_a_start_imports_the_files_and_shows_the_import(send, ann_browser):
    send(("faq.csv", FAQ), ("hours.txt", b"We open at nine."))
    keys = list(Upload.objects.values_list("pk", flat=True))
    chosen = {f"prompt-{keys[0]}": "question", f"completion-{keys[0]}": "answer", f"uri-{keys[0]}": ""}
    response = ann_browser.post(address("upload_start"), {"upload": keys, **chosen}, headers=HTMX)
    job = Import.objects.get()
    assert (job.kind, job.address, job.state) == ("files", "faq.csv and 1 more", "queued")
    assert job.uploads.count() == 2
    assert Upload.objects.get(pk=keys[0]).options == {"prompt": "question", "completion": "answer", "uri": ""}
    assert "job-changed" in json.loads(response.headers["HX-Trigger"])


def test_files_are_started_once(send, ann_browser):
    send(("hours.txt", b"We open at nine."))
    key = Upload.objects.get().pk
    ann_browser.post(address("upload_start"), {"upload": key}, headers=HTMX)
    Import.objects.update(state="done")
    page = ann_browser.post(address("upload_start"), {"upload": key}, headers=HTMX).content.decode()
    assert "not waiting any more" in page
    assert Import.objects.count() == 1


def test_while_an_import_runs_the_files_wait(send, support, ann_browser):
    send(("hours.txt", b"We open at nine."))
    Import.objects.create(model=support, address="example.com", max_pages=1)
    key = Upload.objects.get().pk
    page = ann_browser.post(address("upload_start"), {"upload": key}, headers=HTMX).content.decode()
    assert "Nothing was started" in page
    assert "hours.txt" in page
    assert Upload.objects.get().job is None


def test_discarding_forgets_the_files(send, ann_browser):
    send(("hours.txt", b"We open at nine."))
    response = ann_browser.post(address("upload_discard"), {"upload": Upload.objects.get().pk}, headers=HTMX)
    assert response.status_code == 204
    assert not Upload.objects.exists()


def test_nothing_chosen_is_said(send):
    assert "Choose at least one file." in send()


@pytest.mark.parametrize("sent", ["x", "-1", "9" * 40, "1e3", "²"])
def test_a_key_that_is_none_finds_nothing(send, sent):
    assert "Choose at least one file." in send(upload=sent)


def test_another_models_files_are_not_shown(send, support, acme_store):
    from models_app.models import MLModel

    other = MLModel.objects.create(slug="other", name="Other")
    foreign = take_in(other, "hidden.txt", b"Secret text")
    assert "hidden.txt" not in send(upload=foreign.pk)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("C:\\docs\\prices.pdf", "prices.pdf"),
        ("../../etc/passwd", "passwd"),
        ("a\x00b\n.txt", "a\ufffdb.txt"),
        ("", "file"),
        ("x" * 300 + ".pdf", "x" * 196 + ".pdf"),
        ("\ud800.txt", "?.txt"),
        ("https://acme.test/a.pdf", "a.pdf"),
    ],
)
def test_a_files_name_can_be_stored_and_is_no_address(given, kept):
    assert file_name(given) == kept


def test_hostile_names_and_texts_are_shown_as_text(send):
    page = send(("<img src=x>.csv", b"question,answer\n<script>alert(1)</script>,<b>x</b>\n"))
    assert "<script>alert" not in page
    assert "<img src=x>" not in page


def test_a_preview_of_many_rows_counts_them_all(support):
    body = b"question,answer\n" + b"".join(b"Question %d?,Answer %d\n" % (n, n) for n in range(5_000))
    looked_at = preview(take_in(support, "faq.csv", body))
    assert looked_at.size == "5,000 rows"
    assert looked_at.snippet_count == 5_000
    assert looked_at.is_partial


def test_more_rows_than_may_be_imported_are_refused_in_the_preview(support):
    body = b"question,answer\n" + b"a,b\n" * 1_000_000
    looked_at = preview(take_in(support, "faq.csv", body))
    assert "more than 100,000 rows" in looked_at.error


def test_a_word_file_is_previewed_with_its_snippets(support):
    body = make_docx(word_paragraph("Returns", "Heading1") + word_paragraph("Within 30 days."))
    looked_at = preview(take_in(support, "returns.docx", body))
    assert (looked_at.title, looked_at.snippet_count) == ("Returns", 1)
    assert "Within 30 days." in looked_at.snippets[0].completion
