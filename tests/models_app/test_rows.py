"""Files of rows as other programs write them, whole and broken."""

import json

import pytest

from models_app.rows import Limits, RowsUnreadable, read_rows

CRLF = "prompt,completion\r\nHours?,Nine to five.\r\n"


def cells(body, kind, **limits):
    text = body if isinstance(body, bytes) else body.encode()
    return [dict(row) for row in read_rows(text, kind, Limits(**limits)).rows]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter):
    text = delimiter.join(("question", "answer")) + '\n"A, b; c"' + delimiter + '"Nine | ten\tor, so; yes"\n'
    assert cells(text, "csv") == [{"question": "A, b; c", "answer": "Nine | ten\tor, so; yes"}]


def test_excels_line_that_names_the_delimiter_is_no_row():
    assert cells("sep=;\r\nq;a\r\n1;2\r\n", "csv") == [{"q": "1", "a": "2"}]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
def test_the_encoding_is_found(encoding):
    text = "prompt,completion\r\nCrème brûlée?,5 € – “fresh”\r\n"
    read = read_rows(text.encode(encoding), "csv")
    assert [dict(row) for row in read.rows] == [{"prompt": "Crème brûlée?", "completion": "5 € – “fresh”"}]
    assert bool(read.warnings) == (encoding == "cp1252")


def test_cells_keep_line_ends_quotes_and_large_texts():
    large = "word " * 60_000
    text = f'p,c\r\n"a ""b""","one\r\ntwo\n\nthree"\r\nlarge,"{large}"\r\n'
    assert cells(text, "csv") == [{"p": 'a "b"', "c": "one\r\ntwo\n\nthree"}, {"p": "large", "c": large}]


def test_columns_without_a_name_and_with_the_same_get_one():
    assert read_rows(b"a,,a\n1,2,3\n", "csv").columns == ("a", "column 2", "a (3)")


def test_short_rows_are_filled_and_empty_ones_passed_over():
    assert cells("a,b\n1\n\n,\n2,3\n", "csv") == [{"a": "1", "b": ""}, {"a": "2", "b": "3"}]


def test_a_row_with_too_many_cells_is_named_and_not_cut():
    read = read_rows(b"a,b\n1,2\nx,y, and more\n3,4\n", "csv")
    assert [row.number for row in read.rows] == [1, 3]
    assert read.warnings[0].startswith("Row 2 was left out: it has 3 cells, the first line 2.")


def test_a_quotation_mark_that_is_never_closed_is_told():
    assert "quotation marks is odd" in read_rows(b'a,b\n1,"2\n3,4\n', "csv").warnings[0]


def test_json_is_read_as_a_list_or_as_the_one_list_in_it():
    wanted = [{"q": "1.10", "a": "true", "n": "", "deep": '["x"]'}]
    rows = '[{"q": 1.10, "a": true, "n": null, "deep": ["x"]}]'
    assert cells(rows, "json") == cells(f'{{"version": 3, "faqs": {rows}}}', "json") == wanted
    assert cells(rows.encode("utf-16"), "json") == wanted


def test_json_lines_are_known_under_the_name_of_json_too():
    lines = '{"q": "one\u2028two"}\r\n\n{"q": "three"}'
    assert cells(lines, "jsonl") == cells(lines, "json") == [{"q": "one\u2028two"}, {"q": "three"}]


def test_broken_lines_are_named_and_the_others_kept():
    read = read_rows(b'{"q": "1"}\n{"q": \n[1]\n"text"\n' + b"[" * 100_000 + b'\n{"q": "6", "a": "x"}', "jsonl")
    assert [(row.number, dict(row)) for row in read.rows] == [(1, {"q": "1"}), (6, {"q": "6", "a": "x"})]
    assert [warning.split(":")[0] for warning in read.warnings] == [f"Row {n} was left out" for n in (2, 3, 4, 5)]
    assert read.columns == ("q", "a")


def test_of_many_broken_lines_the_first_are_named_and_the_others_counted():
    warnings = read_rows(b"broken\n" * 500 + b'{"q": "1"}', "jsonl").warnings
    assert len(warnings) == 21 and warnings[-1] == "And 480 more of the kind."


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "csv"),
        ("\ufeff  \n", "csv"),
        ("prompt,completion\n", "csv"),
        ("[", "json"),
        ("[" * 100_000, "json"),
        ("<html>", "json"),
        ('"text"', "json"),
        ("[]", "json"),
        ("{}", "json"),
        ('{"a": [], "b": []}', "json"),
        ("[1, 2]", "json"),
        ("," * 1_000_000, "csv"),
        (json.dumps([{str(n): n for n in range(300)}]), "json"),
        ("nothing\nof it", "jsonl"),
        ("just a text", "yaml"),
        ("a: [b", "yaml"),
        ("- &a {q: 1}\n- *a", "yaml"),
        ("[" * 5_000, "yaml"),
        ("- " * 60 + "x", "yaml"),
        ("? [a, b]\n: c", "yaml"),
        ("a: \x07", "yaml"),
    ],
)
def test_what_holds_no_rows_is_refused_with_a_reason(text, kind):
    with pytest.raises(RowsUnreadable) as refusal:
        read_rows(text.encode(), kind)
    assert str(refusal.value).endswith((".", "?"))


def test_a_value_of_any_depth_is_read_or_named():
    for depth in range(100, 1_100, 50):
        deep = '{"a": "x"}\n{"a": ' + "[" * depth + "]" * depth + "}"
        read = read_rows(deep.encode(), "jsonl")
        assert read.count + len(read.warnings) == 2


def test_half_a_utf_16_file_is_refused():
    with pytest.raises(RowsUnreadable):
        read_rows(CRLF.encode("utf-16")[:-1], "csv")


def test_yaml_stays_as_it_was_written():
    text = "- q: Is it open?\n  a: yes\n  price: 1.10\n  none: ~\n  long: |\n    one\n    two\n"
    text += "- {q: 'null', a: !!python/name:os.system x}"
    assert cells(text, "yaml") == [
        {"q": "Is it open?", "a": "yes", "price": "1.10", "none": "", "long": "one\ntwo\n"},
        {"q": "null", "a": "x"},
    ]


def test_yaml_documents_are_rows_too():
    assert cells("q: 1\na: 2\n---\nq: 3\n", "yaml") == [{"q": "1", "a": "2"}, {"q": "3"}]


def test_aliases_that_multiply_are_not_followed():
    bomb = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 20))
    with pytest.raises(RowsUnreadable, match="alias"):
        read_rows(bomb.encode(), "yaml")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"a,b\n" + b"1,2\n" * 1_000_000, "csv"),
        (b'{"a": "1"}\n' * 1_000_000, "jsonl"),
        (b"broken\n" * 1_000_000, "jsonl"),
        (b"- {a: 1}\n" * 100_001, "yaml"),
        (b"[" + b"{}," * 100_001 + b"{}]", "json"),
    ],
)
def test_a_million_rows_end_early(body, kind):
    with pytest.raises(RowsUnreadable, match="more than 100,000 rows"):
        read_rows(body, kind)


def test_a_file_that_is_too_large_is_not_even_read():
    with pytest.raises(RowsUnreadable, match="larger than 1 MB"):
        read_rows(b"x" * 1_000_001, "csv", Limits(max_bytes=1_000_000))


def test_rows_can_be_gone_through_twice():
    read = read_rows(json.dumps([{"a": "1"}] * 3).encode(), "json")
    assert read.count == len(list(read.rows)) == len(list(read.rows)) == 3
