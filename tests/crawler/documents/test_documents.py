"""Documents as people upload them: what is read, in which order, and how hostile or broken ones end."""

import io
import subprocess
import sys
import zipfile
from datetime import datetime

import pytest

from crawler.documents.reader import PROJECT, DocumentUnreadable, ReadingTooSlow, kind_of, read_document
from crawler.markup.markdown import plain_words
from tests.fakes.documents import (
    filled_form,
    make_docx,
    make_pdf,
    make_pptx,
    make_xlsx,
    make_zip,
    pdf_page,
    scanned_pdf,
    word_paragraph,
    word_table,
)


def read(body: bytes, name: str, **options):
    return read_document(body, kind_of(body, name), name, **options)


def refusal(body: bytes, name: str) -> str:
    with pytest.raises(DocumentUnreadable) as caught:
        read(body, name)
    return caught.value.message


def test_what_a_file_is_is_told_by_its_bytes_and_not_by_its_name():
    assert kind_of(make_pdf(pdf_page("Hello")), "hello.docx") == "pdf"
    assert kind_of(make_docx(word_paragraph("Hello")), "hello.pdf") == "docx"
    assert kind_of(make_xlsx(A=[["Hello"]]), "hello") == "xlsx"
    assert kind_of(make_pptx({"title": "Hello"}), "hello.txt") == "pptx"
    assert kind_of(b"<!doctype html><p>Hello", "hello.txt") == "html"
    assert kind_of(b"# Hello", "hello.md") == "markdown"
    assert kind_of(b"Hello", "hello.pdf") == "text"
    assert kind_of(b"<b>prompt</b>,completion\nHi,there", "faq.csv") == "csv"


@pytest.mark.parametrize(
    ("body", "name", "said"),
    [
        (b"", "empty.pdf", "is empty"),
        (b"\xef\xbb\xbf \n\0", "empty.txt", "is empty"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), "old.doc", "Office before 2007"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), "a.docx", "password"),
        (make_zip({"a.txt": "a"}), "files.docx", "archive"),
        (make_zip({"mimetype": "application/vnd.oasis", "content.xml": "<a/>"}), "a.odt", "OpenDocument"),
        (make_xlsx(A=[["Hello"]])[:900], "cut.xlsx", "damaged"),
        (b"\x89PNG\r\n\x1a\n" + bytes(99), "picture.pdf", "not read"),
        (bytes(range(32)) * 9, "noise.txt", "not read"),
    ],
)
def test_what_is_not_read_is_refused_with_its_reason(body, name, said):
    assert said in refusal(body, name)


# --- PDF


def test_lines_of_a_pdf_become_paragraphs_and_headings():
    lines = [("Returns", 20, 72, 740), *pdf_page("You may return what you bought here", "within 30 days. It is free.")]
    document = read(make_pdf([*lines, ("Another paragraph.", 11, 72, 650)]), "returns.pdf")
    assert document.markdown.split("\n\n") == [
        "# Returns",
        "You may return what you bought here within 30 days. It is free.",
        "Another paragraph.",
    ]
    assert document.title == "Returns"
    assert document.part_count == 1


def test_words_that_a_line_breaks_are_whole_again_and_compounds_keep_their_hyphen():
    page = pdf_page(
        "We deliver to every country of the Euro-",
        "pean Union, by a well-known company. It is well-",
        "known for that. Deliveries are docu-",
        "mented.",
    )
    words = plain_words(read(make_pdf(page), "a.pdf").markdown)
    assert "European Union" in words
    assert "is well-known for" in words
    assert "documented." in words


def test_what_stands_on_most_pages_is_said_once():
    pages = [
        [
            ("Acme price list", 9, 72, 770),
            *pdf_page(f"Chapter text {word}: it costs 12 EUR."),
            (f"Page {number + 3}", 9, 300, 30),
            ("Call 0800 123", 9, 72, 30),
        ]
        for number, word in enumerate(("one", "two", "three", "four"))
    ]
    words = plain_words(read(make_pdf(*pages), "a.pdf").markdown)
    assert words.count("Acme price list") == words.count("Call 0800 123") == 1
    assert [words.count(f"text {word}:") for word in ("one", "two", "three", "four")] == [1] * 4
    assert "Page 4" not in words


def test_a_sentence_goes_on_over_the_pages_end():
    pages = (pdf_page("The warranty lasts for two years and", top=100), pdf_page("covers all parts."))
    assert "two years and covers all" in read(make_pdf(*pages), "a.pdf").markdown


def test_the_outline_tells_headings_that_look_like_text():
    pages = (pdf_page("1. Opening hours", "", "We open at 9."), pdf_page("Prices", "", "A day costs 12 EUR."))
    pages[0][2] = ("We open at 9.", 11, 72, 640)
    markdown = read(make_pdf(*pages, outline=[("Opening hours", 0), ("Prices", 1)]), "a.pdf").markdown
    assert "# 1\\. Opening hours" in markdown or "# 1. Opening hours" in markdown
    assert "# Prices" in markdown


def test_lists_of_a_pdf_are_lists():
    page = pdf_page("We repair:", "• city bikes and all that", "belongs to them", "• cargo bikes")
    markdown = read(make_pdf(page), "a.pdf").markdown
    assert "- city bikes" in markdown
    assert "- cargo bikes" in markdown


def test_rows_that_stand_below_each_other_are_a_table():
    rows = [("Bike", "Half a day", "Day"), ("City bike", "8.50 EUR", "12 EUR"), ("Cargo bike", "20 EUR", "35 EUR")]
    lines = [
        (cell, 11, left, 700 - 14 * number)
        for number, row in enumerate(rows)
        for cell, left in zip(row, (72, 200, 330), strict=True)
    ]
    markdown = read(make_pdf([*lines, ("That is all.", 11, 72, 600)]), "a.pdf").markdown
    head = "| Bike | Half a day | Day |\n| --- | --- | --- |"
    assert markdown == f"{head}\n| City bike | 8.50 EUR | 12 EUR |\n| Cargo bike | 20 EUR | 35 EUR |\n\nThat is all."


def test_columns_are_read_one_after_the_other():
    left = pdf_page("The customer is liable for damage", "that goes beyond all wear and tear,", "and for theft.")
    right = pdf_page("Cancelling is free until one day", "before. After that half is due.", left=330)
    markdown = read(make_pdf([*left, *right]), "a.pdf").markdown
    assert "damage that goes beyond all wear and tear, and for theft." in markdown
    assert "free until one day before. After" in markdown


def test_short_lines_stay_lines():
    page = pdf_page("Acme Ltd", "1 High Street", "A much longer line that fills the whole of its column, more or less")
    assert "Acme Ltd  \n1 High Street" in read(make_pdf(page), "a.pdf").markdown


def test_what_is_filled_into_a_form_is_read():
    assert "Name: Ann Smith" in plain_words(read(filled_form(), "form.pdf").markdown)


def test_a_pdfs_own_title_counts_unless_a_program_made_it():
    assert read(make_pdf(pdf_page("Hello"), title="Annual report"), "a.pdf").title == "Annual report"
    assert read(make_pdf(pdf_page("Hello"), title="Microsoft Word - x.doc"), "price_list.pdf").title == "price list"


def test_a_pdf_without_text_or_behind_a_password_says_so():
    assert "no text layer" in refusal(scanned_pdf(), "scan.pdf")
    assert "password protected" in refusal(make_pdf(pdf_page("Secret"), password="pass"), "a.pdf")
    assert "damaged" in refusal(b"%PDF-1.4\nnothing of the kind", "a.pdf")


def test_the_preview_of_a_long_pdf_reads_its_beginning():
    body = make_pdf(*[pdf_page(f"Page of number {number}") for number in range(60)])
    document = read(body, "long.pdf", is_preview=True)
    assert document.is_partial
    assert document.part_count == 60
    assert "number 1" in document.markdown
    assert "number 59" not in document.markdown


# --- Office


def test_a_word_file_keeps_headings_tables_and_what_stands_in_its_header():
    body = word_paragraph("Returns", "Heading1") + word_paragraph("Within 30 days.") + word_table(["Bike", "5 €"])
    document = read(make_docx(body, header1=word_paragraph("Acme Ltd, 0800 123")), "returns.docx")
    assert document.markdown.startswith("# Returns\n\nWithin 30 days.")
    assert "| Bike | 5 € |" in document.markdown or "Bike" in document.markdown
    assert document.markdown.endswith("Acme Ltd, 0800 123")
    assert document.title == "Returns"


def test_a_formula_that_the_library_leaves_out_is_not_lost():
    formula = "<w:p><m:oMath><m:r><m:t>E=mc2</m:t></m:r></m:oMath></w:p>"
    assert "E=mc2" in read(make_docx(word_paragraph("Energy") + formula), "a.docx").markdown


def test_text_that_was_deleted_in_a_word_file_is_not_read():
    deleted = "<w:p><w:del><w:r><w:delText>old price 10</w:delText></w:r></w:del></w:p>"
    assert "old price" not in read(make_docx(word_paragraph("New price 12") + deleted), "a.docx").markdown


def test_slides_become_sections_with_their_tables_and_notes():
    slides = (
        {"title": "Opening hours", "lines": [(0, "Monday 9-18"), (1, "not on holidays"), (0, "Tuesday")]},
        {"title": "Prices", "table": [["Bike", "Day"], ["City", "12 €"]], "notes": "Ask for discounts"},
        {"title": "Internal", "lines": [(0, "margin 40 %")], "is_hidden": True},
    )
    document = read(make_pptx(*slides), "acme.pptx")
    assert "## Opening hours\n\n- Monday 9-18\n  - not on holidays\n- Tuesday" in document.markdown
    assert "| Bike | Day |\n| --- | --- |\n| City | 12 € |" in document.markdown
    assert "Ask for discounts" in document.markdown
    assert "margin" not in document.markdown
    assert any("hidden" in warning for warning in document.warnings)


def test_sheets_become_tables_as_they_read_in_excel():
    rows = [
        ["Price list"],
        ["Bike", None, "Day", "Tax", "From"],
        ["City | bike", None, (12.5, '#,##0.00 "€"'), (0.19, "0%"), datetime(2026, 3, 1)],
    ]
    document = read(make_xlsx(Prices=rows, Hidden=[["cost price"]]), "prices.xlsx")
    assert "Price list\n\n| Bike | Day | Tax | From |" in document.markdown
    assert "| City \\| bike | 12.50 € | 19 % | 2026-03-01 |" in document.markdown
    assert "cost price" not in document.markdown
    assert any("hidden" in warning for warning in document.warnings)


def test_a_formula_that_was_never_calculated_is_said():
    document = read(make_xlsx(Prices=[["Bike", "Total"], ["City", "=1+1"]]), "prices.xlsx")
    assert any("formula" in warning for warning in document.warnings)


def test_a_huge_sheet_is_cut_and_says_so():
    row = '<row><c t="inlineStr"><is><t>Bike</t></is></c><c><v>12</v></c></row>'
    body = bytearray(make_xlsx(Prices=[["Bike", "Day"]]))
    package = make_big_sheet(bytes(body), row * 60_000)
    document = read(package, "huge.xlsx")
    assert any("100,000 cells" in warning for warning in document.warnings)
    assert "| Bike | 12 |" in document.markdown


def make_big_sheet(workbook: bytes, rows: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(workbook)) as package:
        parts = {name: package.read(name) for name in package.namelist()}
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    parts["xl/worksheets/sheet1.xml"] = f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>'
    return make_zip(parts)


# --- Text


def test_text_keeps_its_lines_and_is_no_markdown():
    document = read("Opening *hours*\nMo 9–18\n\n# 1 of all".encode("utf-16"), "hours.txt")
    assert document.markdown == "Opening \\*hours\\*  \nMo 9–18\n\n\\# 1 of all"
    assert document.title == "hours"


def test_markdown_stays_as_it_is_and_html_is_converted_with_its_menu():
    assert read(b"# Hours\n\n| a | b |\n", "hours.md").markdown == "# Hours\n\n| a | b |\n"
    document = read(b"<title>Hours</title><nav>Menu</nav><main><p>Open at <b>9</b></p></main>", "hours.html")
    assert document.markdown == "Open at **9**\n\nMenu"
    assert document.title == "Hours"


def test_a_zero_character_is_no_text():
    assert "\0" not in read(b"Hello\0 world and more text to read", "a.txt").markdown


# --- Hostile files


def test_a_zip_bomb_is_refused_before_it_is_unpacked():
    bomb = make_zip({"[Content_Types].xml": "<Types/>", "xl/workbook.xml": bytes(400_000_000)})
    assert len(bomb) < 1_000_000
    assert "too large" in refusal(bomb, "bomb.xlsx")


def test_entities_that_multiply_are_refused():
    laughs = '<!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><w:document/>'
    parts = {"[Content_Types].xml": "<Types/>", "word/document.xml": laughs}
    assert "no Office program" in refusal(make_zip(parts), "laughs.docx")


def test_a_broken_part_ends_in_a_refusal():
    assert "damaged" in refusal(make_docx("<w:p><w:r>")[:-40], "a.docx")
    parts = {"[Content_Types].xml": "<Types/>", "word/document.xml": "<w:document", "ppt/presentation.xml": "<p"}
    assert "damaged" in refusal(make_zip(parts), "a.docx")


def test_markup_nested_without_end_stays_within_its_limits():
    body = b"<!doctype html>" + b"<div><b>" * 200_000 + b"deep"
    try:
        assert "deep" in read(body, "deep.html").markdown
    except DocumentUnreadable as error:
        assert error.message


def test_the_reader_knows_nothing_of_this_process():
    """Neither settings nor keys are in reach of a parser that a file has taken over."""
    modules = "crawler.documents.child, crawler.documents.pdf, crawler.documents.word, sys"
    code = f"import {modules}; print('django' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, check=True, text=True)
    assert ended.stdout.strip() == "False"


def test_slowness_is_told_from_damage():
    assert issubclass(ReadingTooSlow, DocumentUnreadable)
