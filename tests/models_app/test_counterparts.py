"""Our own export, changed in a spreadsheet or by hand: what was changed is an edit of the snippet that stands."""

import csv
import json
from io import StringIO

import pytest

from models_app import index, snippets
from models_app.models import TrainingSnippet
from models_app.snippets import Replaced, replace_page_snippets
from tests.models_app.test_exchange import delete_all, exported, read_back, write_csv, write_lines
from tests.models_app.test_snippets import CHAIR, LAMP, SHELF, URL, Draft

MINE = "The lamp costs what you like."


@pytest.fixture
def page(support):
    """The model with a page of three sections."""
    replace_page_snippets(support, URL, [LAMP, CHAIR, SHELF])
    return support


def lines_of(model) -> list[dict]:
    return [json.loads(line) for line in exported(write_lines, model).splitlines()]


def come_back(model, lines, **options):
    counts = read_back(model, "".join(f"{json.dumps(line)}\n" for line in lines).encode(), "jsonl", **options)
    assert index.check_model(model.pk) == []
    return counts.added, counts.changed, counts.kept


def test_a_text_changed_in_a_spreadsheet_is_an_edit(page):
    lamp = page.snippets.get(prompt="Lamp")
    rows = list(csv.reader(StringIO(exported(write_csv, page).decode("utf-8-sig"), newline="")))
    saved = StringIO(newline="")
    csv.writer(saved).writerows([[{LAMP.completion: MINE}.get(cell, cell) for cell in row] for row in rows])
    counts = read_back(page, saved.getvalue().encode("utf-8-sig"), "csv", author="ann@acme.test")
    assert (counts.added, counts.changed, counts.kept, counts.skipped) == (0, 1, 2, 0)
    lamp.refresh_from_db()
    assert (lamp.completion, lamp.is_edited, lamp.source, lamp.source_completion) == (
        MINE,
        True,
        "crawl",
        LAMP.completion,
    )
    assert list(lamp.versions.values_list("completion", "cause", "author")) == [
        (LAMP.completion, "edited", "ann@acme.test")
    ]


def test_the_next_change_of_the_page_asks_before_it_replaces_the_edit(page):
    lines = lines_of(page)
    lines[0]["completion"] = MINE
    come_back(page, lines)
    changed = [Draft("Lamp", "The lamp costs 45 euros."), CHAIR, SHELF]
    assert replace_page_snippets(page, URL, changed) == Replaced(kept=3, conflicts=1)
    assert page.snippets.get(prompt="Lamp").completion == MINE


def test_a_changed_title_is_an_edit_of_the_title(page):
    pk = page.snippets.get(prompt="Lamp").pk
    lines = lines_of(page)
    lines[0]["prompt"] = "What does the lamp cost?"
    assert come_back(page, lines) == (0, 1, 2)
    row = page.snippets.get(pk=pk)
    assert (row.prompt, row.completion, row.source_prompt) == (lines[0]["prompt"], LAMP.completion, "Lamp")


def test_the_same_file_again_changes_nothing(page):
    lines = lines_of(page)
    lines[0]["completion"] = MINE
    assert [come_back(page, lines) for _ in range(2)] == [(0, 1, 2), (0, 0, 3)]


def test_of_one_title_the_place_tells_which_it_was(support):
    replace_page_snippets(support, URL, [Draft("Lamp", f"Lamp number {place}.") for place in range(4)])
    before = list(support.snippets.order_by("position").values_list("pk", flat=True))
    lines = lines_of(support)
    lines[2]["completion"] = "Sold out."
    lines.append(lines[1] | {"position": 9, "completion": "One more."})
    assert come_back(support, reversed(lines)) == (1, 1, 3)
    assert support.snippets.get(completion="Sold out.").pk == before[2]
    assert support.snippets.get(completion="One more.").pk not in before


def test_of_one_title_and_place_the_most_alike_is_taken(support):
    rows = [snippets.add(support, "", text) for text in ("We open at nine on weekdays.", "Parking is behind it.")]
    lines = lines_of(support)
    lines[0]["completion"], lines[1]["completion"] = "Parking is before it.", "We open at ten on weekdays."
    assert come_back(support, lines) == (0, 2, 0)
    for row in rows:
        row.refresh_from_db()
    assert [row.completion for row in rows] == ["We open at ten on weekdays.", "Parking is before it."]
    assert not any(row.is_edited for row in rows), "what was written by hand has no other source"


def test_a_row_that_was_copied_and_changed_is_one_more_snippet(page):
    lines = lines_of(page)
    assert come_back(page, [lines[0] | {"completion": MINE}, *lines]) == (1, 0, 3)


def test_two_that_are_the_same_are_changed_one_by_one(support):
    for _ in range(2):
        snippets.add(support, "Hours?", "Nine to five.")
    lines = lines_of(support)
    lines[0]["completion"], lines[1]["completion"] = "Nine to six.", "Nine to seven."
    assert come_back(support, lines) == (0, 2, 0)
    assert set(support.snippets.values_list("completion", flat=True)) == {"Nine to six.", "Nine to seven."}


def test_an_edited_snippet_that_was_changed_again_in_the_file_keeps_its_source(page):
    lamp = page.snippets.get(prompt="Lamp")
    snippets.edit(lamp, "Lamp", "Mine.", URL)
    lines = lines_of(page)
    lines[0]["completion"] = MINE
    assert come_back(page, lines) == (0, 1, 2)
    lamp.refresh_from_db()
    assert (lamp.completion, lamp.source_completion) == (MINE, LAMP.completion)


def test_a_row_without_a_counterpart_comes_in_as_the_file_says(page):
    lines = lines_of(page)
    elsewhere = [line | {"uri": f"{URL}#{place}"} for place, line in enumerate(lines)]
    assert come_back(page, elsewhere) == (3, 0, 0)
    row = page.snippets.get(uri=f"{URL}#0")
    assert (row.source, row.is_edited, row.source_hash) == (
        "crawl",
        False,
        page.snippets.get(uri=URL, position=0).source_hash,
    )


def test_what_an_import_added_is_no_counterpart_of_its_later_rows(support):
    snippets.add_many(support, (TrainingSnippet(prompt="Note", completion=f"Note {n}.") for n in range(1_001)))
    body = exported(write_lines, support)
    delete_all(support)
    assert read_back(support, body, "jsonl").added == 1_001
    assert exported(write_lines, support) == body


def test_an_import_that_was_stopped_between_edits_ends_at_the_same(page):
    lines, checks = lines_of(page), []
    for line in lines:
        line["completion"] += " Ask first."

    def check():
        checks.append(None)
        if len(checks) == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        come_back(page, lines, check=check)
    assert come_back(page, lines) == (0, 2, 1)
    assert not page.snippets.exclude(completion__endswith=" Ask first.").exists()
