"""Gives each page one address: links are resolved and written in one way, so that none is fetched twice.

Only what cannot change the page is rewritten; normalising too much loses pages. Whether an address belongs to the
site is site.py's question.
"""

import re
from functools import lru_cache
from urllib.parse import SplitResult, urljoin, urlsplit

import idna

from tenants.public_addresses import DEFAULT_PORTS

# The endings of files that are pages.
PAGE_FILE = re.compile(r"\.(x?html?|shtml|php\d?|aspx?|jspx?|cfm|cgi|do|md|txt)$", re.I)
OUTER_BLANKS = "".join(map(chr, range(0x21)))
LINE_BREAKS = str.maketrans("", "", "\t\r\n")
BEFORE_QUERY = re.compile(r"^[^?#]*")
ENCODED_BYTE = re.compile(r"%([0-9a-fA-F]{2})")
LONE_PERCENT = re.compile(r"%(?![0-9a-fA-F]{2})")
UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
# What RFC 3986 lets stand unencoded in a path, and besides in a query; browsers let a few more stand, "[" and "|".
NOT_IN_PATH = re.compile(r"[^A-Za-z0-9\-._~!$&'()*+,;=:@/%]")
NOT_IN_QUERY = re.compile(r"[^A-Za-z0-9\-._~!$&'()*+,;=:@/%?\[\]|]")

# Parameters that mark a visit and never choose a page: advertising and newsletter tags, session numbers.
VISIT_PARAMETER = re.compile(
    r"utm_[^=]*|gclid|gclsrc|dclid|gbraid|wbraid|fbclid|msclkid|yclid|twclid|ttclid|igshid|li_fat_id|srsltid|_ga|_gl"
    r"|mc_cid|mc_eid|mkt_tok|_hsenc|_hsmi|__hs[a-z]+|hsctatracking|vero_id"
    r"|phpsessid|jsessionid|aspsessionid[a-z]*|cfid|cftoken|oscsid|xtcsid|zenid|sessid",
    re.I,
)
# Names that may also mean something else mark a visit where the value looks like the number of one.
SESSION_PARAMETER = re.compile(r"sid|ses|sess|session([-_]?id)?", re.I)
SESSION_NUMBER = re.compile(r"(?=.*[0-9])(?=.*[a-z])[0-9a-z]{20,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)
MAX_RUN_SEGMENTS = 10
PATH_SESSION = re.compile(r";(jsessionid|phpsessid|sid)=[^/;?]*", re.I)
# ASP.NET's sessions without cookies stand in a segment of their own: /(S(24 characters))/
PATH_SESSION_SEGMENT = re.compile(r"/\((?:[A-Z]\([0-9a-z_-]{8,}\))+\)(?=/)", re.I)


@lru_cache(maxsize=4_096)  # neighbouring pages lead to much the same others
def normalise_url(url: str, base: str = "") -> str | None:
    """Return the one way to write the address of a page, or None if it is no web address (mailto:, javascript:).

    Host in lower case and ASCII, no default port, fragment, dot segments, session or advertising parameters; encoding
    of characters unified (RFC 3986, 6.2.2). A trailing slash and the order of parameters stay: they can matter.
    """
    try:
        parts = urlsplit(urljoin(base, _as_browsers_read(url)))
        port = parts.port
    except ValueError:
        return None
    host = ascii_host(parts.hostname or "")
    if parts.scheme not in DEFAULT_PORTS or not host or "@" in parts.netloc:
        return None
    shown = f"[{host}]" if ":" in host else host
    netloc = shown if port in (None, DEFAULT_PORTS[parts.scheme]) else f"{shown}:{port}"
    shared_path = PATH_SESSION_SEGMENT.sub("", PATH_SESSION.sub("", parts.path))
    path = _remove_dot_segments(_unify_encoding(shared_path, NOT_IN_PATH))
    query = _unify_encoding(_without_visit_parameters(parts.query), NOT_IN_QUERY)
    return SplitResult(parts.scheme, netloc, path or "/", query, "").geturl()


def normalise_pattern(pattern: str) -> str:
    """Return a pattern of paths with its characters encoded as those of addresses; its stars stay."""
    path, mark, query = pattern.partition("?")
    return f"{_unify_encoding(path, NOT_IN_PATH)}{mark}{_unify_encoding(query, NOT_IN_QUERY)}"


def _as_browsers_read(url: str) -> str:
    """Return the address without outer blanks and line breaks, with slashes for backslashes before the query."""
    cleaned = url.strip(OUTER_BLANKS).translate(LINE_BREAKS)
    return BEFORE_QUERY.sub(lambda match: match[0].replace("\\", "/"), cleaned)


def ascii_host(host: str) -> str | None:
    """Return the host in lower-case ASCII (IDNA, UTS 46) without its last dot, or None if it can be no host."""
    try:
        name = host.lower() if host.isascii() else idna.encode(host, uts46=True).decode()
    except idna.IDNAError:
        return None
    return name.rstrip(".") if re.fullmatch(r"[\w.:-]*", name, re.A) else None


def _unify_encoding(text: str, not_allowed: re.Pattern[str]) -> str:
    encoded = ENCODED_BYTE.sub(_decode_unreserved, LONE_PERCENT.sub("%25", text))
    return not_allowed.sub(_encode, encoded)


def _decode_unreserved(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in UNRESERVED else match[0].upper()


def _encode(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace"))


def _remove_dot_segments(path: str) -> str:
    """Return the path with "." and ".." carried out (RFC 3986, 5.2.4)."""
    kept: list[str] = []
    segments = path.split("/")
    for segment in segments[1:]:
        if segment == "..":
            kept[-1:] = []
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def _without_visit_parameters(query: str) -> str:
    return "&".join(part for part in query.split("&") if not _marks_visit(*part.partition("=")[::2]))


def _marks_visit(name: str, value: str) -> bool:
    is_session = SESSION_PARAMETER.fullmatch(name) and SESSION_NUMBER.fullmatch(value)
    return bool(VISIT_PARAMETER.fullmatch(name) or is_session)


def has_repeating_path(url: str) -> bool:
    """Return whether segments of the path repeat back to back: two or more of them twice, or a single one three times.

    Such an address comes from a relative link that lengthens itself on each page. A single segment twice is common
    in honest addresses ("/2024/11/11/news").
    """
    segments = [segment for segment in urlsplit(url).path.split("/") if segment]
    for length in range(1, MAX_RUN_SEGMENTS + 1):
        times = 3 if length == 1 else 2
        for start in range(len(segments) - length * times + 1):
            run = segments[start : start + length]
            if segments[start : start + length * times] == run * times:
                return True
    return False
