"""Where a page sends its visitors on: by a refresh that leaves nobody time to read it, or to a login."""

import html
import re
from urllib.parse import urldefrag, urljoin, urlsplit

# Longer waits are meant for reading, or reload a page that changes (a score, a queue).
MAX_REFRESH_SECONDS = 3
# Refreshes stand in the head.
SEARCHED_CHARACTERS = 5_000

LOGIN_SEGMENT = re.compile(
    r"(wp-)?(log|sign)[-_]?(in|on)(\.(php|html?|aspx?|jsp|do))?|sso|saml2?|oauth2?|openid-connect", re.I
)
LOGIN_HOST = re.compile(r"(login|signin|sso|auth|accounts|idp)\.", re.I)

# What browsers with scripts do not read as markup of the page.
NOT_READ = re.compile(r"<!--.*?(?:-->|$)|<(noscript|script|style|template|title)\b.*?(?:</\1\s*>|$)", re.I | re.S)
TAG = re.compile(r"<(meta|base)\b((?:[^>\"']|\"[^\"]*\"|'[^']*')*+)>", re.I)
ATTRIBUTE = re.compile(r"([\w-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
# HTML, "shared declarative refresh steps".
REFRESH = re.compile(r"\s*(\d{1,6})?(?:\.[\d.]*)?\s*[;,\s]\s*(?:url\s*=\s*)?+(\"[^\"]*|'[^']*|\S.*)", re.I | re.S)


def looks_like_login(url: str) -> bool:
    """Return whether the address is by its name one where people log in."""
    parts = urlsplit(url)
    last_segment = parts.path.rstrip("/").rpartition("/")[2]
    return bool(LOGIN_SEGMENT.fullmatch(last_segment) or LOGIN_HOST.match(parts.netloc))


def refresh_target(text: str, url: str, header: str = "") -> str | None:
    """Return the address to which the page's Refresh header or meta element sends its visitors at once, or None.

    A page that only reloads itself stays where it is.
    """
    base, refresh = url, header
    start = text[:SEARCHED_CHARACTERS]
    if not refresh and "refresh" in start.lower():
        base, refresh = _refresh_in(start, url)
    match = REFRESH.fullmatch(refresh)
    if not match or int(match[1] or 0) > MAX_REFRESH_SECONDS:
        return None
    try:
        target = urldefrag(urljoin(base, match[2].lstrip("\"'").strip())).url
    except ValueError:
        return None
    return None if target == urldefrag(url).url else target


def _refresh_in(start: str, url: str) -> tuple[str, str]:
    """Return the page's base address, and what its first meta element for a refresh says."""
    base = ""
    for name, written in TAG.findall(NOT_READ.sub("", start)):
        attributes = {key.lower(): html.unescape("".join(values)) for key, *values in ATTRIBUTE.findall(written)}
        if name.lower() == "base":
            base = base or attributes.get("href", "")
        elif attributes.get("http-equiv", "").strip().lower() == "refresh":
            return _joined(url, base), attributes.get("content", "")
    return url, ""


def _joined(url: str, base: str) -> str:
    try:
        return urljoin(url, base)
    except ValueError:
        return url
