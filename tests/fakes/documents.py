"""Makes small files of each kind, whole and broken, as people upload them."""

import hashlib
import io
import zipfile
from datetime import datetime
from html import escape

import openpyxl
from pptx import Presentation
from pptx.util import Inches

HEIGHT, WIDTH = 792, 612
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
WORD_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
PASSWORD_PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


def make_pdf(*pages, outline=(), title="", password="") -> bytes:
    """Return a PDF of pages, each a list of lines (text, size, left, y); `outline` has (title, page) entries."""
    objects = [b"", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"]
    numbers = []
    for lines in pages:
        drawn = "\n".join(f"BT /F1 {size} Tf {left} {y} Td ({_pdf_text(text)}) Tj ET" for text, size, left, y in lines)
        stream = drawn.encode("cp1252")
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] /Contents {len(objects)} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        numbers.append(len(objects))
    kids = " ".join(f"{number} 0 R" for number in numbers)
    objects[1] = f"<< /Type /Pages /Count {len(numbers)} /Kids [{kids}] >>".encode()
    catalogue = "<< /Type /Catalog /Pages 2 0 R"
    if outline:
        first = len(objects) + 2
        for place, (entry, page) in enumerate(outline):
            following = f"/Next {first + place + 1} 0 R" if place + 1 < len(outline) else ""
            target = f"[{numbers[page]} 0 R /Fit]"
            objects.append(f"<< /Title ({entry}) /Parent {first - 1} 0 R /Dest {target} {following} >>".encode())
        objects.insert(first - 2, f"<< /First {first} 0 R /Last {first + len(outline) - 1} 0 R >>".encode())
        catalogue += f" /Outlines {first - 1} 0 R"
    objects[0] = f"{catalogue} >>".encode()
    trailer = f"/Size {len(objects) + 1} /Root 1 0 R"
    if title:
        objects.append(f"<< /Title ({title}) >>".encode())
        trailer += f" /Info {len(objects)} 0 R"
    return _pdf_file(objects, trailer + (_encryption(password) if password else ""))


def _pdf_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _pdf_file(objects: list[bytes], trailer: str) -> bytes:
    body, places = b"%PDF-1.4\n", []
    for number, text in enumerate(objects, start=1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, text)
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    table = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    return body + f"{table}trailer << {trailer} >>\nstartxref\n{len(body)}\n%%EOF".encode()


def _encryption(password: str) -> str:
    """Return the trailer's part that asks for the password (PDF 1.7, algorithms 2 to 4)."""
    padded = (password.encode() + PASSWORD_PADDING)[:32]
    owner = _rc4(hashlib.md5(padded).digest()[:5], padded)
    identifier = bytes(16)
    key = hashlib.md5(padded + owner + (2**32 - 4).to_bytes(4, "little") + identifier).digest()[:5]
    user = _rc4(key, PASSWORD_PADDING)
    keys = f"/O <{owner.hex()}> /U <{user.hex()}> /P -4"
    return f" /ID [<{identifier.hex()}> <{identifier.hex()}>] /Encrypt << /Filter /Standard /V 1 /R 2 {keys} >>"


def _rc4(key: bytes, text: bytes) -> bytes:
    state, j = list(range(256)), 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    i = j = 0
    out = bytearray()
    for byte in text:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)


def pdf_page(*texts: str, size=11, top=700, left=72) -> list[tuple]:
    """Return the lines of a page, one below the other."""
    return [(text, size, left, top - 14 * place) for place, text in enumerate(texts)]


def scanned_pdf() -> bytes:
    """Return a PDF whose one page is a drawn picture."""
    stream = b"0 0 1 rg 100 100 300 300 re f"
    page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] /Contents 4 0 R >>".encode()
    content = b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream)
    pages = b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>"
    return _pdf_file([b"<< /Type /Catalog /Pages 2 0 R >>", pages, page, content], "/Size 5 /Root 1 0 R")


def filled_form() -> bytes:
    """Return a PDF whose page says `Name:`, with `Ann Smith` filled in beside it."""
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    drawn = b"BT /F1 11 Tf 72 700 Td (Name:) Tj ET"
    filled = b"BT /F1 11 Tf 2 5 Td (Ann Smith) Tj ET"
    fonts = b"/Resources << /Font << /F1 5 0 R >> >>"
    return _pdf_file(
        [
            b"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [6 0 R] >> >>",
            b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Annots [6 0 R] %s >>" % fonts,
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
            font,
            b"<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (Ann Smith) /F 4 /Rect [120 695 300 715] "
            b"/P 3 0 R /AP << /N 7 0 R >> >>",
            b"<< /Type /XObject /Subtype /Form /BBox [0 0 180 20] %s /Length %d >>\nstream\n%s\nendstream"
            % (fonts, len(filled), filled),
        ],
        "/Size 8 /Root 1 0 R",
    )


def make_docx(body: str, **parts: str) -> bytes:
    """Return a Word file with this markup in its body; further parts are such as `header1`."""
    names = f'xmlns:w="{WORD}" xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    heading = '<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>'
    written = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" '
        f'ContentType="application/xml"/><Override PartName="/word/document.xml" ContentType="{WORD_TYPE}"/></Types>',
        "_rels/.rels": _relations("officeDocument", "word/document.xml"),
        "word/_rels/document.xml.rels": _relations("styles", "styles.xml"),
        "word/document.xml": f"<w:document {names}><w:body>{body}</w:body></w:document>",
        "word/styles.xml": f"<w:styles {names}>{heading}</w:styles>",
    }
    for name, markup in parts.items():
        written[f"word/{name}.xml"] = f"<w:hdr {names}>{markup}</w:hdr>"
    return make_zip(written)


def _relations(kind: str, target: str) -> str:
    relation = f'<Relationship Id="r1" Type="{OFFICE}/{kind}" Target="{target}"/>'
    return f'<Relationships xmlns="{PACKAGE}/relationships">{relation}</Relationships>'


def make_zip(parts: dict[str, str | bytes]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as package:
        for name, text in parts.items():
            package.writestr(name, text)
    return written.getvalue()


def word_paragraph(text: str, style: str = "") -> str:
    chosen = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{chosen}<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


def word_table(*rows) -> str:
    lines = ("".join(f"<w:tc>{word_paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return "<w:tbl>" + "".join(f"<w:tr>{line}</w:tr>" for line in lines) + "</w:tbl>"


def make_xlsx(**sheets) -> bytes:
    """Return a workbook of sheets, each a list of rows; a cell may be a pair of value and number format."""
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.active)
    for title, rows in sheets.items():
        sheet = workbook.create_sheet(title)
        sheet.sheet_state = "hidden" if title.startswith("Hidden") else "visible"
        for row_number, row in enumerate(rows, start=1):
            for column, cell in enumerate(row, start=1):
                value, number_format = cell if isinstance(cell, tuple) else (cell, None)
                written = sheet.cell(row_number, column, value)
                if number_format:
                    written.number_format = number_format
    workbook.properties.modified = datetime(2026, 1, 1)
    stream = io.BytesIO()
    workbook.save(stream)
    return stream.getvalue()


def make_pptx(*slides: dict) -> bytes:
    """Return slides of a title, `lines` of (level, text), a `table`, `notes`, and whether it `is_hidden`."""
    presentation = Presentation()
    for wanted in slides:
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = wanted["title"]
        frame = slide.placeholders[1].text_frame
        for number, (level, text) in enumerate(wanted.get("lines", [])):
            paragraph = frame.add_paragraph() if number else frame.paragraphs[0]
            paragraph.text, paragraph.level = text, level
        if rows := wanted.get("table"):
            size = (Inches(1), Inches(4), Inches(5), Inches(1))
            table = slide.shapes.add_table(len(rows), len(rows[0]), *size).table
            for row_number, row in enumerate(rows):
                for column, text in enumerate(row):
                    table.cell(row_number, column).text = text
        if wanted.get("notes"):
            slide.notes_slide.notes_text_frame.text = wanted["notes"]
        if wanted.get("is_hidden"):
            slide._element.set("show", "0")
    stream = io.BytesIO()
    presentation.save(stream)
    return stream.getvalue()
