"""Snippets as files: what goes out comes back to the letter, and what others wrote comes in once."""

import csv
import json
from io import StringIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from models_app import snippets
from models_app.exchange import (
    FIELDS,
    Columns,
    armed,
    defused,
    guess_columns,
    import_rows,
    is_our_export,
    write_csv,
    write_lines,
)
from models_app.models import MLModel, TrainingSnippet
from models_app.retrieval import retrieve
from models_app.rows import read_rows

TEXTS = [
    "Nine to five.",
    '=HYPERLINK("https://evil.test")\n\n- a list\r\n- with line ends',
    "'=1+1 with an apostrophe of its own",
    "''-v' is the flag",
    "\tindented, 👩‍👩‍👧 emoji, é as e\u0301, right \u200fto left\u2028line separator",
    '|a|b|\n|--|--|\n|1;2|"3"|',
    "'plain quote', \"double\", \\back\\slash\\n",
    "＝full width＝",
]


def in_order(model):
    return list(model.snippets.values_list("pk", flat=True))


def exported(write, model) -> bytes:
    return b"".join(write(model, in_order(model)))


def read_back(model, body, kind, **options):
    return import_rows(model, read_rows(body, kind), **options)


@pytest.fixture
def filled(support) -> MLModel:
    """The model with snippets of every source and state."""
    for place, text in enumerate(TEXTS):
        source = TrainingSnippet.Source.values[place % 4]
        snippets.add(support, f"{text[:20]} {place}", text, f"https://acme.test/{place % 3}", source=source)
    edited = support.snippets.filter(source="crawl").first()
    snippets.edit(edited, "Mine", "=mine", edited.uri)
    fields = {"conflict": "changed", "new_prompt": "+Theirs", "new_completion": "@theirs", "position": 7}
    support.snippets.filter(pk=edited.pk).update(**fields)
    return support


def delete_all(model):
    snippets.delete(model, in_order(model))


@pytest.mark.parametrize(("write", "kind"), [(write_lines, "jsonl"), (write_lines, "json"), (write_csv, "csv")])
def test_an_export_comes_back_to_the_letter(filled, write, kind):
    body = exported(write, filled)
    rows = list(filled.snippets.order_by("uri", "position", "id").values(*FIELDS, "token_count", "source_hash"))
    delete_all(filled)
    counts = read_back(filled, body, kind)
    assert (counts.added, counts.kept, counts.skipped, counts.errors) == (len(TEXTS), 0, 0, ())
    assert exported(write, filled) == body
    assert list(filled.snippets.order_by("uri", "position", "id").values(*FIELDS, "token_count", "source_hash")) == rows
    assert retrieve(filled, "flag", mode="keyword").hits[0].text == "''-v' is the flag"


def test_what_stands_already_is_kept_and_not_doubled(filled):
    body = exported(write_lines, filled)
    counts = read_back(filled, body, "jsonl")
    assert (counts.added, counts.kept) == (0, len(TEXTS))
    assert exported(write_lines, filled) == body


def test_what_stands_twice_comes_back_twice(support):
    for _ in range(2):
        snippets.add(support, "Hours?", "Nine to five.")
    body = exported(write_lines, support)
    delete_all(support)
    assert [read_back(support, body, "jsonl").added for _ in range(2)] == [2, 0]


def test_five_thousand_snippets_go_out_in_small_parts(support):
    texts = (TrainingSnippet(prompt=f"Title {n}", completion=f"Text {n} " * 20, position=n) for n in range(5_000))
    snippets.add_many(support, texts)
    parts = list(write_lines(support, in_order(support)))
    assert len(parts) == 10 and max(len(part) for part in parts) < 300_000
    delete_all(support)
    steps = []
    counts = read_back(support, b"".join(parts), "jsonl", progress=lambda done, total: steps.append((done, total)))
    assert counts.added == 5_000
    assert steps == [(done, 5_000) for done in range(500, 5_001, 500)]
    assert b"".join(write_lines(support, in_order(support))) == b"".join(parts)


def test_what_was_deleted_meanwhile_is_passed_over(filled):
    ids = in_order(filled)
    parts = write_csv(filled, ids)
    next(parts)
    snippets.delete(filled, ids[:2])
    assert len(read_rows(b"".join([",".join(FIELDS).encode() + b"\r\n", *parts]), "csv").columns) == len(FIELDS)
    assert filled.snippets.count() == len(TEXTS) - 2


@given(st.text())
@example("'=")
@example("''\t")
@example('" =1')
@example(" \n＋")
def test_every_cell_comes_back_as_it_was(text):
    assert armed(defused(text)) == text


@given(st.text(alphabet="=+-@＝＋－＠'\" \t\r\nab"))
def test_no_cell_begins_as_a_formula(text):
    cell = defused(text)
    assert not cell.startswith(tuple("=+-@＝＋－＠\t\r\n"))
    bare = cell.lstrip(' "\t\r\n')
    assert not bare.startswith(tuple("=+-@＝＋－＠")), "a blank or a quotation mark before it is no protection"


def test_a_csv_is_read_by_a_spreadsheet(filled):
    body = exported(write_csv, filled)
    assert body.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(StringIO(body.decode("utf-8-sig"), newline="")))
    assert {row["completion"] for row in rows} >= {"'=mine", "'＝full width＝"}
    assert not [cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]


def test_a_csv_that_a_spreadsheet_saved_anew_comes_back(filled):
    body = exported(write_csv, filled)
    lines = list(csv.reader(StringIO(body.decode("utf-8-sig"), newline="")))
    saved = StringIO(newline="")
    csv.writer(saved, delimiter=";", quoting=csv.QUOTE_ALL).writerows(
        [[{"true": "TRUE"}.get(cell, cell) for cell in line] for line in lines]
    )
    delete_all(filled)
    assert read_back(filled, saved.getvalue().encode("utf-16"), "csv").added == len(TEXTS)
    assert exported(write_csv, filled) == body


def test_rows_of_others_become_snippets_of_the_file(support):
    body = b'Question,Answer,Link\r\nAre  you open?,"Yes,\r\ndaily.",https://acme.test/hours\r\nParking?,Behind.,\r\n'
    columns = guess_columns(read_rows(body, "csv").columns)
    assert columns == Columns("Question", "Answer", "Link")
    assert read_back(support, body, "csv", columns=columns, uri="faq.csv").added == 2
    assert list(support.snippets.order_by("position").values_list("prompt", "completion", "uri", "source")) == [
        ("Are you open?", "Yes,\ndaily.", "https://acme.test/hours", "upload"),
        ("Parking?", "Behind.", "faq.csv", "upload"),
    ]


def test_an_apostrophe_of_others_stays(support):
    read_back(support, b"q,a\nFlag?,'-v' it is\n", "csv", columns=Columns("q", "a"))
    assert support.snippets.get().completion == "'-v' it is"


def test_a_row_that_is_there_twice_comes_in_once(support):
    counts = read_back(support, b"q,a\nA,B\nA,B\nA,C\n", "csv", columns=Columns("q", "a"))
    assert (counts.added, counts.kept) == (2, 1)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"a": " \n "}, "no text"),
        ({"q": "only a title"}, "no text"),
        ({"a": "with \x00"}, "NUL"),
        ({"a": "half \ud83d"}, "surrogate"),
        ({"q": "x" * 1_001, "a": "y"}, "title is longer"),
        ({"a": "y" * 200_001}, "text is longer"),
        ({"a": "y", "u": "javascript:alert(1)"}, "is no address"),
        ({"a": "y", "u": "/hours"}, "is no address"),
        ({"a": "y", "u": "https://acme.test/" + "x" * 2_000}, "opens no page"),
    ],
)
def test_a_row_that_cannot_be_a_snippet_is_named_and_the_others_come_in(support, cells, reason):
    body = "\n".join(json.dumps(row) for row in ({"q": "good", "a": "text"}, cells, {"a": "untitled"}))
    counts = read_back(support, body.encode(), "jsonl", columns=Columns("q", "a", "u"))
    assert (counts.added, counts.skipped) == (2, 1)
    assert counts.errors[0].startswith("Row 2 was left out: ") and reason in counts.errors[0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"source": "nowhere"},
        {"conflict": "war"},
        {"position": "-1"},
        {"position": "x"},
        {"uri": " JavaScript:alert(1)"},
    ],
)
def test_an_export_that_was_tampered_with_breaks_nothing(filled, wrong):
    lines = exported(write_lines, filled).decode().splitlines(keepends=True)
    lines[0] = json.dumps(json.loads(lines[0]) | wrong) + "\n"
    delete_all(filled)
    counts = read_back(filled, "".join(lines).encode(), "jsonl")
    assert counts.skipped == 1 and "Row 1 was left out" in counts.errors[0]


def test_a_full_workspace_ends_the_import_and_says_how_much_is_left(acme, support):
    acme.snippet_quota = 700
    acme.save()
    body = "a\n" + "".join(f"text {n}\n" for n in range(1_200))
    counts = read_back(support, body.encode(), "csv", columns=Columns(completion="a"))
    assert (counts.added, counts.skipped) == (500, 700)
    assert "holds its 700 snippets" in counts.errors[0] and "700 rows" in counts.errors[0]


def test_an_import_can_be_stopped_between_batches(support):
    checks = []

    def check():
        checks.append(None)
        if len(checks) == 2:
            raise InterruptedError

    body = "a\n" + "".join(f"text {n}\n" for n in range(1_200))
    with pytest.raises(InterruptedError):
        read_back(support, body.encode(), "csv", columns=Columns(completion="a"), check=check)
    assert support.snippets.count() == 500


@pytest.mark.parametrize(
    ("columns", "guessed"),
    [
        (("id", "URL", "Title", "Body"), Columns("Title", "Body", "URL")),
        (("frage", "antwort"), Columns("frage", "antwort")),
        (("alles",), Columns("", "alles")),
        (("eins", "zwei", "drei"), Columns()),
        (FIELDS, Columns("prompt", "completion", "uri")),
    ],
)
def test_columns_are_guessed_by_their_names(columns, guessed):
    assert guess_columns(columns) == guessed


def test_only_all_fields_make_an_export_of_ours(filled):
    assert is_our_export(read_rows(exported(write_lines, filled), "jsonl"))
    assert not is_our_export(read_rows(b"prompt,completion,uri\n1,2,3\n", "csv"))
