"""Reads what received bytes are and what text they hold: the kind by the bytes themselves, the charset as browsers do.

Touches no network; pages, sitemaps and uploaded files are read alike.
"""

import codecs
import contextlib
import io
import re
import zipfile

import webencodings

TEXT_KINDS = frozenset({"html", "xml", "text", "markdown"})
# Office's documents are zip files, told apart by the folder that holds their main part (ECMA-376, part 2).
FOLDERS_OF_KINDS = {"word/": "docx", "ppt/": "pptx", "xl/": "xlsx"}
PACKAGE_MEMBER = "[Content_Types].xml"
ZIPPED_KINDS = frozenset(FOLDERS_OF_KINDS.values())
DOCUMENT_KINDS = ZIPPED_KINDS | {"pdf"}
# What a verdict needs to see; enough for a prolog, a licence comment and the first elements.
SNIFF_BYTES = 4096
# Browsers look for a charset in the first 1,024 bytes; pages that put scripts first are read right with more.
PRESCAN_BYTES = 4096

MAGIC_NUMBERS = (
    (b"%PDF-", "pdf"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
    (b"\x1f\x8b", "gzip"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "office"),
    (b"{\\rtf", "rtf"),
    (b"\x89PNG\r\n\x1a\n", "image"),
    (b"GIF87a", "image"),
    (b"GIF89a", "image"),
    (b"\xff\xd8\xff", "image"),
    (b"\x00\x00\x01\x00", "image"),
    (b"ID3", "audio"),
    (b"OggS", "audio"),
    (b"fLaC", "audio"),
    (b"\x1a\x45\xdf\xa3", "video"),
    (b"7z\xbc\xaf\x27\x1c", "archive"),
    (b"Rar!\x1a\x07", "archive"),
    (b"BZh", "archive"),
    (b"\xfd7zXZ\x00", "archive"),
    (b"\x28\xb5\x2f\xfd", "archive"),
    (b"wOFF", "font"),
    (b"wOF2", "font"),
    (b"\x7fELF", "program"),
)
CONTAINER_KINDS = {b"WEBP": "image", b"AVI ": "video", b"WAVE": "audio"}
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# Bytes that no text encoding uses (WHATWG MIME sniffing, "binary data byte").
BINARY_BYTES = bytes(byte for byte in range(0x20) if byte not in b"\t\n\f\r\x1b")
MAX_BINARY_SHARE = 0.05
HTML_DOCTYPE = re.compile(rb"<!doctype\s+html[\s>]", re.I)
MARKDOWN_NAME = re.compile(r"\.(md|markdown|mdown|mkd)$", re.I)
MARKDOWN_TYPES = frozenset({"text/markdown", "text/x-markdown"})
FRAGMENT_START = re.compile(
    rb"</?(head|body|title|meta|link|script|style|iframe|table|div|main|article|section|header|nav|p|h[1-6]|ul|ol|a|br|b"
    rb"|font|img)[\s/>]",
    re.I,
)
PROLOG = re.compile(rb"\s+|<!--.*?-->|<\?.*?\?>|<!doctype[^>\[]*(\[.*?\]\s*)?>", re.I | re.S)
ROOT_NAME = re.compile(rb"<(?:[\w.-]+:)?([\w.-]+)")

HEADER_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([^\s;,\"']+)", re.I)
XML_ENCODING = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([\w.:-]+)[\"']", re.I)
COMMENT = re.compile(rb"<!--.*?-->", re.S)
META_TAG = re.compile(rb"<meta[\s/]+((?:[^>\"']|\"[^\"]*\"|'[^']*')*)>", re.I)
ATTRIBUTE = re.compile(rb"([\w-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
# Python's gbk lacks what browsers read under that label.
WIDER_CODECS = {"gbk": "gb18030"}


def sniff_kind(body: bytes, content_type: str = "", name: str = "") -> str:
    """Return what the bytes are: "html", "xml", "text", "markdown", or a binary file's kind such as "pdf" or "image".

    The start (SNIFF_BYTES of it are enough) decides; the declared content type and the file's name only where the
    bytes leave it open. A zip file is told to be a "docx", "pptx" or "xlsx" if it is whole.
    """
    start = body[:SNIFF_BYTES]
    declared = content_type.partition(";")[0].strip().lower()
    binary = _binary_kind(start.lstrip())
    if binary:
        return _zipped_kind(body) if binary == "zip" else binary
    # Before "binary", since markup with a stray zero byte is a page, and so is UTF-16, half of which is zero bytes.
    markup = _markup_kind(_narrow(start, content_type), declared)
    if markup:
        return markup
    if _is_binary(_narrow(start, content_type)):
        return "binary"
    if declared in ("text/html", "application/xhtml+xml"):
        return "html"
    return "markdown" if declared in MARKDOWN_TYPES or MARKDOWN_NAME.search(name) else "text"


def _zipped_kind(body: bytes) -> str:
    """Return which document of Office the zip file is by its members' names, or "zip"."""
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as package:
            names = package.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OverflowError):
        return "zip"
    if PACKAGE_MEMBER not in names:
        return "zip"
    return next(
        (kind for folder, kind in FOLDERS_OF_KINDS.items() if any(name.startswith(folder) for name in names)), "zip"
    )


def _binary_kind(start: bytes) -> str | None:
    for magic, kind in MAGIC_NUMBERS:
        if start.startswith(magic):
            return kind
    if start.startswith(b"RIFF"):
        return CONTAINER_KINDS.get(start[8:12], "binary")
    if start[4:8] == b"ftyp":
        return "image" if start[8:12] in (b"avif", b"heic", b"mif1") else "video"
    return None


def _narrow(start: bytes, content_type: str) -> bytes:
    """Return the start with one byte a character for Latin text, whatever UTF it came in."""
    encoding = _marked_encoding(start) or _labelled_encoding(_header_label(content_type))
    if encoding and encoding.startswith("utf-16"):
        return start.decode(encoding, "ignore").lstrip("\ufeff").encode()
    return start.removeprefix(codecs.BOM_UTF8)


def _markup_kind(start: bytes, declared: str) -> str | None:
    prolog, body = _split_prolog(start)
    root = ROOT_NAME.match(body)
    root_name = root[1].lower() if root else b""
    if HTML_DOCTYPE.search(prolog) or root_name == b"html":
        return "html"
    if root_name == b"svg":
        return "image"
    if root and (b"<?xml" in prolog or ("xml" in declared and "xhtml" not in declared)):
        return "xml"
    if declared.startswith("text/") and declared != "text/html":
        return None
    return "html" if FRAGMENT_START.match(body) else None


def _split_prolog(start: bytes) -> tuple[bytes, bytes]:
    """Return the comments, processing instructions and document type, and what follows them."""
    position = 0
    while match := PROLOG.match(start, position):
        position = match.end()
    return start[:position], start[position:]


def _is_binary(start: bytes) -> bool:
    binary_count = len(start) - len(start.translate(None, BINARY_BYTES))
    return binary_count > max(1, MAX_BINARY_SHARE * len(start))


def decode_text(body: bytes, content_type: str = "", kind: str = "html") -> str:
    """Return the text of the body, without zero characters and with no replacement character of our own making.

    The first of these that is there decides: byte order mark, charset of the content type, charset declared inside;
    else UTF-8 if it reads every byte, else windows-1252. Bytes that do not fit the declared charset are read as
    windows-1252, the rest as declared. (Source of the order and of the labels: WHATWG Encoding and HTML.)
    """
    declared = _marked_encoding(body) or _declared_encoding(body, content_type, kind)
    for encoding in (declared, "utf-8"):
        if encoding:
            with contextlib.suppress(UnicodeDecodeError):
                return _cleaned(body.decode(encoding))
    return _cleaned(body.decode(declared or "windows-1252", "sitewise-windows-1252"))


def _cleaned(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\x00", "")


def _read_as_windows_1252(error: UnicodeError) -> tuple[str, int]:
    """Read undecodable bytes as browsers' windows-1252, in which each byte has a meaning."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    bad = error.object[error.start : error.end]
    characters = (bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in bad)
    return "".join(characters), error.end


codecs.register_error("sitewise-windows-1252", _read_as_windows_1252)


def _marked_encoding(body: bytes) -> str | None:
    return next((encoding for mark, encoding in BYTE_ORDER_MARKS if body.startswith(mark)), None)


def _declared_encoding(body: bytes, content_type: str, kind: str) -> str | None:
    inside = _xml_label(body) if kind == "xml" else _meta_label(body) or _xml_label(body)
    return _labelled_encoding(_header_label(content_type)) or _labelled_encoding(inside)


def _header_label(content_type: str) -> str:
    match = HEADER_CHARSET.search(content_type)
    return match[1] if match else ""


def _xml_label(body: bytes) -> str:
    match = XML_ENCODING.match(body.lstrip()[:PRESCAN_BYTES])
    return _readable_label(match[1]) if match else ""


def _meta_label(body: bytes) -> str:
    """Return the first known charset that a meta element near the start declares."""
    for tag in META_TAG.finditer(COMMENT.sub(b"", body[:PRESCAN_BYTES])):
        attributes = {name.lower(): b"".join(values) for name, *values in ATTRIBUTE.findall(tag[1])}
        label = attributes.get(b"charset", b"").decode("ascii", "ignore")
        if attributes.get(b"http-equiv", b"").strip().lower() == b"content-type":
            label = label or _header_label(attributes.get(b"content", b"").decode("ascii", "ignore"))
        if _labelled_encoding(label):
            return _readable_label(label.encode())
    return ""


def _readable_label(label: bytes) -> str:
    """Return the label, with UTF-16 read as UTF-8: what declares itself in ASCII cannot be UTF-16."""
    text = label.decode("ascii", "ignore")
    return "utf-8" if text.strip().lower().startswith("utf-16") else text


def _labelled_encoding(label: str) -> str | None:
    """Return Python's name for the encoding that browsers know under the label, or None for an unknown label."""
    try:
        encoding = webencodings.lookup(label) if label else None
    except UnicodeError:
        return None
    if encoding is None or encoding.name in ("replacement", "x-user-defined"):
        return None
    return WIDER_CODECS.get(encoding.name, encoding.codec_info.name)
