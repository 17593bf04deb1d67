import io
import os
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.web.decode import decode_text, sniff_kind

RANDOM = os.urandom(5_000)


def test_texts_of_the_case_are_decoded_as_a_browser_does(case):
    responses, texts = case("W14")["input"]["responses"], case("W14")["expected"]["texts"]
    for response, text in zip(responses, texts, strict=True):
        body = eval(response["body"])
        decoded = decode_text(body, response["content_type"])
        assert text in decoded
        assert "\ufffd" not in decoded
        assert sniff_kind(body, response["content_type"]) == "html"


def test_kinds_of_the_case_are_told_by_the_bytes(case):
    kinds = {}
    for response in case("W15")["input"]["responses"]:
        body = eval(response["body"].replace(" (docx)", ""), {"random": RANDOM})
        kinds[response["path"]] = sniff_kind(body, response["content_type"] or "")
    assert kinds == {"/a": "pdf", "/b": "zip", "/c": "html", "/d": "html"}


@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])))
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_any_text_in_a_declared_encoding_comes_back_whole(encoding, text):
    label = encoding.replace("-sig", "")
    decoded = decode_text(text.encode(encoding), f'text/html; charset="{label}"')
    if not text.startswith("\ufeff"):
        assert decoded == text


@given(st.binary())
@pytest.mark.parametrize(
    "charset", ["", "utf-8", "gbk", "shift_jis", "euc-kr", "big5", "euc-jp", "windows-1251", "utf-16le"]
)
def test_no_bytes_at_all_raise_or_make_a_replacement_character(charset, body):
    text = decode_text(body, f"text/html; charset={charset}")
    assert "\x00" not in text
    encodings = ("utf-8", "utf-16-le", "utf-16-be", "gb18030", "big5hkscs", "euc_jp", "cp949", "cp932")
    assert "\ufffd" not in text or any("\ufffd" in body.decode(name, "ignore") for name in encodings)


@given(st.binary())
def test_without_any_label_bytes_are_utf8_or_else_windows_1252(body):
    marked = body.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"))
    if marked or b"<" in body:
        return
    try:
        expected = body.decode()
    except UnicodeDecodeError:
        expected = "".join(bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in body)
    assert decode_text(body) == expected.replace("\x00", "")


def test_a_few_broken_bytes_do_not_turn_a_declared_page_into_mojibake():
    body = "<p>Crème brûlée ".encode() + b"\x93warm\x94" + b"</p>"
    assert decode_text(body, "text/html; charset=utf-8") == "<p>Crème brûlée “warm”</p>"
    with_old_meta = b'<meta charset="iso-8859-1">' + body
    assert "Crème brûlée" in decode_text(with_old_meta, "text/html; charset=utf-8")


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ('<meta charset="windows-1251">', "cp1251"),
        ("<META CHARSET=windows-1251 />", "cp1251"),
        ("<meta content='text/html; charset=koi8-r' http-equiv='content-type'>", "koi8-r"),
        ('<!-- <meta charset="koi8-r"> --><meta charset="windows-1251">', "cp1251"),
        ('<meta charset="nonsense"><meta charset="windows-1251">', "cp1251"),
        ('<meta name="description" content="charset=koi8-r"><meta charset="windows-1251">', "cp1251"),
        ('<?xml version="1.0" encoding="windows-1251"?><html>', "cp1251"),
        ("<script>" + "x" * 2000 + '</script><meta charset="windows-1251">', "cp1251"),
    ],
)
def test_a_charset_declared_inside_is_found_where_a_browser_finds_it(head, encoding):
    assert decode_text(head.encode() + "<p>Привет</p>".encode(encoding)).endswith("<p>Привет</p>")


def test_a_declaration_in_ascii_cannot_mean_utf16():
    assert decode_text('<meta charset="utf-16"><p>né</p>'.encode()).endswith("<p>né</p>")
    assert decode_text('<?xml version="1.0" encoding="UTF-16"?><a>né</a>'.encode(), kind="xml").endswith("<a>né</a>")


def test_labels_mean_what_browsers_take_them_for():
    assert decode_text("①㈱".encode("cp932"), "text/html; charset=Shift_JIS") == "①㈱"
    assert decode_text("똠".encode("cp949"), "text/html; charset=euc-kr") == "똠"
    assert decode_text("㐀".encode("gb18030"), "text/html; charset=gb2312") == "㐀"
    assert decode_text(b"\x80", "text/html; charset=us-ascii") == "€"


@pytest.mark.parametrize(
    ("start", "content_type", "kind"),
    [
        (b"%PDF-1.7", "", "pdf"),
        (b"\r\n%PDF-1.4", "text/html", "pdf"),
        (b"\x89PNG\r\n\x1a\n....", "text/html", "image"),
        (b"RIFF....WEBPVP8 ", "", "image"),
        (b"....ftypisom", "text/html", "video"),
        (b"....ftypavif", "", "image"),
        (b"\x1f\x8b\x08", "text/html", "gzip"),
        (b"PK\x05\x06", "text/html", "zip"),
        (RANDOM.replace(b"<", b""), "text/html", "binary"),
        (RANDOM.replace(b"<", b""), "", "binary"),
        (b"", "text/html", "html"),
        (b"Hello", "text/html", "html"),
        (b"Hello", "text/plain", "text"),
        (b"Hello \x00 there", "text/html", "html"),
        (b"<p>a\x00\x00b</p>", "text/html", "html"),
        (b"\xef\xbb\xbf <!DOCTYPE html><p>", "application/octet-stream", "html"),
        ("\ufeff<!doctype html>".encode("utf-16"), "", "html"),
        ("<html>".encode("utf-16-le"), "text/html; charset=utf-16le", "html"),
        (b"<!-- made by x --><!-- y --><html lang=en>", "text/plain", "html"),
        (b"<div><p>part</p></div>", "", "html"),
        (b"<p>an example of markup</p>", "text/plain", "text"),
        (b'{"a": 1}', "application/json", "text"),
        (b'<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C" "x"><html>', "text/html", "html"),
        (b'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">', "application/xml", "html"),
        (b'<?xml version="1.0"?><rss version="2.0">', "text/html", "xml"),
        (b'\n<?xml version="1.0"?><!-- c --><urlset>', "text/xml", "xml"),
        (b"<urlset>", "application/xml", "xml"),
        (b'<?xml version="1.0"?><svg:svg>', "", "image"),
        (b'<svg xmlns="http://www.w3.org/2000/svg">', "text/html", "image"),
        (b"<!-- open to the end", "text/html", "html"),
    ],
)
def test_the_bytes_say_what_a_file_is_and_the_type_only_where_they_do_not(start, content_type, kind):
    assert sniff_kind(start, content_type) == kind


@given(
    st.binary(max_size=300), st.sampled_from(["", "text/html", "text/html; charset=\udcff", "TEXT/HTML;charset=utf-16"])
)
def test_sniffing_and_decoding_never_fail(body, content_type):
    assert sniff_kind(body, content_type)
    assert isinstance(decode_text(body, content_type), str)


def package(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for name in names:
            packed.writestr(name, "x")
    return buffer.getvalue()


TYPES = "[Content_Types].xml"


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        ((TYPES, "_rels/.rels", "word/document.xml"), "docx"),
        (("word/document2.xml", TYPES), "docx"),
        ((TYPES, "ppt/presentation.xml"), "pptx"),
        ((TYPES, "xl/workbook.xml", "xl/worksheets/sheet1.xml"), "xlsx"),
        (("mimetype", "content.xml", "META-INF/manifest.xml"), "zip"),
        (("word/document.xml",), "zip"),
        ((TYPES, "visio/document.xml"), "zip"),
        ((TYPES, "words/document.xml"), "zip"),
        (("report.docx",), "zip"),
        ((), "zip"),
    ],
)
def test_documents_in_zip_files_are_told_apart_by_their_members_names(names, kind):
    assert sniff_kind(package(*names), "text/html") == kind


def test_a_document_within_a_zip_file_does_not_make_it_one():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        packed.writestr("report.docx", package(TYPES, "word/document.xml"))
    assert sniff_kind(buffer.getvalue()) == "zip"


@given(st.integers(0, 400), st.binary(max_size=8))
def test_a_broken_zip_file_is_a_zip_file(position, noise):
    body = package(TYPES, "word/document.xml", "word/styles.xml")
    broken = body[:4] + body[4 : 4 + position] + noise + body[4 + position + len(noise) :]
    assert sniff_kind(broken) in ("zip", "docx")
    assert sniff_kind(body[: 4 + position]) in ("zip", "docx")


def test_markdown_is_plain_text_that_its_type_or_name_calls_so():
    assert sniff_kind(b"# A", "text/markdown; charset=utf-8") == "markdown"
    assert sniff_kind(b"# A", "text/plain", "/docs/README.MD") == "markdown"
    assert sniff_kind(b"# A", "text/plain", "/docs/readme") == "text"
    assert sniff_kind(b"<!doctype html><p>A", "text/plain", "/docs/readme.md") == "html"
