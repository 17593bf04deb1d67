"""The port to Word files (mammoth): DOCX as HTML, followed by the text that mammoth leaves out, such as headers."""

import re
from io import BytesIO

import mammoth

from crawler.documents.reading import Extent, Reading, left_out_html, open_package, title_of

_NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
# The parts that readers of the printed document see. Comments are its authors' talk about it.
_TEXT_PARTS = re.compile(r"word/(document|header\d*|footer\d*|footnotes|endnotes)\.xml$")
_STYLES = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => p:fresh"


def read_docx(body: bytes, extent: Extent) -> Reading:
    """Return what a Word file says. It is always read whole."""
    package = open_package(body)
    pictures = []

    def count_picture(picture) -> list:
        pictures.append(picture)
        return []

    html = mammoth.convert_to_html(BytesIO(body), style_map=_STYLES, convert_image=count_picture).value
    html += left_out_html(package, _TEXT_PARTS, _NAMESPACE, html)
    warnings = [f"Its pictures were not read: {len(pictures):,}."] if pictures else []
    return Reading(html, title=title_of(package), warnings=warnings)
