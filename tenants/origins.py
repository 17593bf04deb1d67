"""Which web origins a public key may be used from: how an entry is read, and whether a browser's Origin is listed.

Hosts are compared whole and after parsing, never as parts of a text. The source of what an origin is: RFC 6454.
"""

import re
from urllib.parse import urlsplit

from tenants.public_addresses import DEFAULT_PORTS, LOOPBACK_NAMES

HOST = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*\Z")


class OriginRefused(ValueError):
    """An entry is no origin; the text says what to write instead."""


def read_origin(entry: str) -> str:
    """Return an entry as it is stored: `https://shop.test`, `http://localhost:3000` or `*.shop.test`.

    A host without a scheme is taken as https, a loopback one as http. Raises OriginRefused.
    """
    text = entry.strip().removesuffix("/").lower()
    if text.startswith("*."):
        return _read_wildcard(entry, text)
    if "://" not in text:
        host = (_split(f"//{text}") or ("", "", None))[1]
        text = f"{'http' if host in LOOPBACK_NAMES else 'https'}://{text}"
    parts = _split(text)
    if parts is None or parts[0] not in DEFAULT_PORTS:
        raise OriginRefused(
            f"“{entry}” is no site's address, as in https://www.example.com (without a path) or *.example.com."
        )
    return _written(*parts)


def is_allowed_origin(origin: str | None, allowed: list[str]) -> bool:
    """Return whether a browser's Origin is on the list: exact host and port, `*.` for sub-domains, nothing else."""
    parts = _split(origin or "")
    if parts is None or parts[0] not in DEFAULT_PORTS:
        return False
    return any(_matches(parts, entry) for entry in allowed)


def _matches(parts: tuple[str, str, int], entry: str) -> bool:
    scheme, host, port = parts
    if entry.startswith("*."):
        wanted = _split(f"{scheme}://{entry[2:]}")
        return wanted is not None and host.endswith(f".{wanted[1]}") and port == wanted[2]
    return parts == _split(entry if "://" in entry else f"{scheme}://{entry}")


def _read_wildcard(entry: str, text: str) -> str:
    parts = _split(f"//{text[2:]}")
    if parts is None or "." not in parts[1]:
        raise OriginRefused(f"“{entry}” is too wide: write whose sub-domains are meant, as in *.example.com.")
    port = f":{parts[2]}" if parts[2] else ""
    return f"*.{parts[1]}{port}"


def _split(origin: str) -> tuple[str, str, int | None] | None:
    """Return scheme, ASCII host and port of an origin, or None for anything that is more or less than that."""
    try:
        parts = urlsplit(origin)
        port = parts.port or DEFAULT_PORTS.get(parts.scheme)
        host = parts.hostname or ""
        host = host if ":" in host else host.encode("idna").decode()
    except ValueError:  # a port that is none, brackets that do not close, a host no name system knows
        return None
    is_bare = not (parts.path or parts.query or parts.fragment or "@" in parts.netloc)
    return (parts.scheme, host, port) if is_bare and (":" in host or HOST.match(host)) else None


def _written(scheme: str, host: str, port: int | None) -> str:
    host = f"[{host}]" if ":" in host else host
    return f"{scheme}://{host}" if port == DEFAULT_PORTS[scheme] else f"{scheme}://{host}:{port}"
