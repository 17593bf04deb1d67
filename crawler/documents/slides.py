"""The port to PowerPoint files (python-pptx): PPTX as HTML, a heading a slide, with tables, charts and notes."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape
from io import BytesIO

from pptx import Presentation
from pptx.enum.shapes import MSO_SHAPE_TYPE, PP_PLACEHOLDER

from crawler.documents.reading import Extent, Reading, left_out_html, open_package, table_html, title_of

MAX_SLIDES = 2_000
PREVIEW_SLIDES = 20
MOST_DEEP = 20
_NAMESPACE = "http://schemas.openxmlformats.org/drawingml/2006/main"
_DIAGRAMS = re.compile(r"ppt/diagrams/data\d*\.xml$")
_TITLES = (PP_PLACEHOLDER.TITLE, PP_PLACEHOLDER.CENTER_TITLE, PP_PLACEHOLDER.VERTICAL_TITLE)
_NUMBERS = (PP_PLACEHOLDER.SLIDE_NUMBER, PP_PLACEHOLDER.DATE)
_NO_TITLE = "PowerPoint Presentation"


def read_pptx(body: bytes, extent: Extent) -> Reading:
    """Return what the slides say and what is noted below them; of a preview, the first ones."""
    package = open_package(body)
    slides = list(Presentation(BytesIO(body)).slides)
    shown = [slide for slide in slides if slide._element.get("show") not in ("0", "false")]
    read = shown[: extent.limit(MAX_SLIDES, PREVIEW_SLIDES)]
    pictures: Counter = Counter()
    html = "".join(_slide(slide, number, pictures) for number, slide in enumerate(read, start=1))
    html += _footers(read) + left_out_html(package, _DIAGRAMS, _NAMESPACE, html)
    title = title_of(package)
    warnings = _warnings(len(slides) - len(shown), pictures.total())
    is_partial = len(read) < len(shown)
    if is_partial and extent is Extent.WHOLE:
        warnings.append(f"Only the first {len(read):,} of its {len(shown):,} slides were read.")
    title = "" if title == _NO_TITLE else title
    return Reading(html, title=title, warnings=warnings, part_count=len(shown), is_partial=is_partial)


def _warnings(hidden: int, pictures: int) -> list[str]:
    warnings = [f"Slides that are hidden were left out: {hidden:,}."] if hidden else []
    return [*warnings, f"Its pictures were not read: {pictures:,}."] if pictures else warnings


def _slide(slide, number: int, pictures: Counter) -> str:
    title, parts = "", []
    for shape in _flat(slide.shapes):
        kind = shape.placeholder_format.type if shape.is_placeholder else None
        if kind in _NUMBERS or kind == PP_PLACEHOLDER.FOOTER:
            continue
        if kind in _TITLES and not title and shape.has_text_frame and shape.text_frame.text.strip():
            title = " ".join(shape.text_frame.text.split())
        else:
            parts.append(_shape(shape, kind, pictures))
    notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    noted = _paragraphs(notes.paragraphs, is_list=False) if notes is not None and notes.text.strip() else ""
    return f"<h2>{escape(title) or f'Slide {number}'}</h2>{''.join(parts)}{noted}"


def _flat(shapes: Iterable, depth: int = 0) -> Iterator:
    """Yield the shapes in their order, those of groups in place of the group."""
    for shape in shapes:
        if shape.shape_type == MSO_SHAPE_TYPE.GROUP and depth < MOST_DEEP:
            yield from _flat(shape.shapes, depth + 1)
        else:
            yield shape


def _shape(shape, kind: PP_PLACEHOLDER | None, pictures: Counter) -> str:
    if getattr(shape, "has_table", False) and shape.has_table:
        return table_html([[cell.text for cell in row.cells] for row in shape.table.rows])
    if getattr(shape, "has_chart", False) and shape.has_chart:
        return _chart(shape.chart)
    if shape.has_text_frame:
        is_list = kind in (PP_PLACEHOLDER.BODY, PP_PLACEHOLDER.OBJECT)
        return _paragraphs(shape.text_frame.paragraphs, is_list)
    pictures["pictures"] += shape.shape_type == MSO_SHAPE_TYPE.PICTURE
    return ""


def _paragraphs(paragraphs: Iterable, is_list: bool) -> str:
    """Return the paragraphs, those of a slide's body as a list as deep as they are indented."""
    html, depth = "", 0
    for paragraph in paragraphs:
        text = escape(paragraph.text.replace("\v", "\n").strip()).replace("\n", "<br>")
        if not text:
            continue
        if not is_list:
            html += f"<p>{text}</p>"
            continue
        level = paragraph.level + 1
        html += "<ul><li>" * (level - depth) if level > depth else "</li></ul>" * (depth - level) + "</li><li>"
        html += text
        depth = level
    return html + "</li></ul>" * depth


def _chart(chart) -> str:
    title = chart.chart_title.text_frame.text if chart.has_title and chart.chart_title.has_text_frame else ""
    heading = f"<p>{escape(title)}</p>" if title.strip() else ""
    rows = []
    for plot in chart.plots:
        series = list(plot.series)
        rows.append(["", *(each.name or "" for each in series)])
        columns = [list(each.values) for each in series]
        for place, category in enumerate(plot.categories):
            values = [column[place] if place < len(column) else None for column in columns]
            rows.append([str(category), *("" if value is None else f"{value:.12g}" for value in values)])
    return heading + (table_html(rows) if len(rows) > 1 else "")


def _footers(slides: Iterable) -> str:
    """Return what stands at the foot of slides, each text once."""
    texts: dict[str, None] = {}
    for slide in slides:
        for shape in slide.placeholders:
            if shape.placeholder_format.type == PP_PLACEHOLDER.FOOTER and shape.has_text_frame:
                texts[" ".join(shape.text_frame.text.split())] = None
    said = "<br>".join(escape(text) for text in texts if text)
    return f"<hr><p>{said}</p>" if said else ""
