"""The command import_files: files to the end of their import in one process."""

import json

import pytest
from django.core.management import CommandError, call_command

from crawler.models import Import, Upload
from models_app.models import MLModel, TrainingSnippet
from tenants.store import activated
from tests.fakes.documents import make_pdf, pdf_page, scanned_pdf

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "hours.pdf").write_bytes(make_pdf(pdf_page("We open at nine.")))
    (tmp_path / "faq.csv").write_text("q,reply\nIs it free?,Yes.\n")
    (tmp_path / "scan.pdf").write_bytes(scanned_pdf())
    return tmp_path


def import_files(*arguments) -> None:
    call_command("import_files", "acme/support", *map(str, arguments), "--retrieval", "keyword")


def test_files_are_imported_and_told_as_one_document(acme, folder, capsys):
    import_files(folder / "hours.pdf", folder / "faq.csv", "--json")
    report = json.loads(capsys.readouterr().out)
    assert (report["state"], report["pages"], report["snippets"]) == ("done", {"done": 2}, 2)
    with activated(acme):
        found = set(TrainingSnippet.objects.values_list("prompt", "completion", "uri"))
    assert found == {("hours", "We open at nine.", "hours.pdf"), ("Is it free?", "Yes.", "faq.csv")}


def test_columns_are_chosen_by_name(acme, folder):
    import_files(folder / "faq.csv", "--prompt-column", "reply", "--completion-column", "q")
    with activated(acme):
        assert TrainingSnippet.objects.get().prompt == "Yes."


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["faq.csv", "--completion-column", "text"], "no column “text” .it has: q, reply"),
        (["missing.pdf"], "cannot be read: No such file"),
        (["scan.pdf"], "no text layer"),
        (["."], "cannot be read"),
    ],
)
def test_what_cannot_be_imported_leaves_nothing_behind(acme, folder, arguments, said):
    with pytest.raises(CommandError, match=said):
        import_files(folder / arguments[0], *arguments[1:])
    with activated(acme):
        assert not MLModel.objects.exists()
        assert not Upload.objects.exists()


def test_two_files_of_one_name_are_refused(acme, folder):
    (folder / "old").mkdir()
    (folder / "old" / "faq.csv").write_text("q,a\nx,y\n")
    with pytest.raises(CommandError, match=r"2 files are called faq\.csv"):
        import_files(folder / "faq.csv", folder / "old" / "faq.csv")
    with activated(acme):
        assert not Import.objects.exists()
