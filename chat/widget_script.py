"""The widget's one script, under two addresses: one that is always the latest, and one for each version of it.

A version's address holds the first characters of its hash, and its text never changes: a page can demand exactly it
(subresource integrity). What was ever handed out is kept, so that an upgrade breaks no page.
"""

import base64
import gzip
import re
from dataclasses import dataclass
from functools import cache
from hashlib import sha384
from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe

SCRIPT = Path(__file__).with_name("browser") / "widget.js"
VERSION = re.compile(r"[0-9a-f]{16}\Z")
LATEST_SECONDS = 3_600
VERSION_SECONDS = 31_536_000


@dataclass(frozen=True)
class Script:
    """One version of the script, as it is sent."""

    text: bytes
    compressed: bytes
    version: str
    integrity: str

    @property
    def path(self) -> str:
        """The address of this very version, from the host's root."""
        return reverse("widget:script_version", args=[self.version])


@require_safe
def script_latest(request: HttpRequest) -> HttpResponse:
    """The script as it is now."""
    return _response(request, current_script(), f"public, max-age={LATEST_SECONDS}")


@require_safe
def script_version(request: HttpRequest, version: str) -> HttpResponse:
    """The script as it was when its address was handed out."""
    return _response(request, _script_of(version), f"public, max-age={VERSION_SECONDS}, immutable")


@cache
def current_script() -> Script:
    """Return the script of this installation."""
    return _script(SCRIPT.read_bytes())


def keep_current_script() -> Script:
    """Return the script of this installation, and keep it for the pages that will demand this version."""
    script, folder = current_script(), _folder()
    kept = folder / f"{script.version}.js"
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(".partial")
        partial.write_bytes(script.text)
        partial.replace(kept)
    return script


def _script_of(version: str) -> Script:
    if version == current_script().version:
        return current_script()
    kept = _folder() / f"{version}.js"
    if not VERSION.match(version) or not kept.is_file():
        raise Http404
    script = _script(kept.read_bytes())
    if script.version != version:
        raise Http404  # a file that was changed is no version of ours
    return script


def _script(text: bytes) -> Script:
    digest = sha384(text)
    return Script(
        text=text,
        compressed=gzip.compress(text, 9, mtime=0),
        version=digest.hexdigest()[:16],
        integrity=f"sha384-{base64.b64encode(digest.digest()).decode()}",
    )


def _folder() -> Path:
    return settings.SITEWISE_DATA_DIR / "widget"


def _response(request: HttpRequest, script: Script, cache_control: str) -> HttpResponse:
    etag = f'"{script.version}"'
    is_known = etag in request.headers.get("If-None-Match", "")
    is_compressed = "gzip" in request.headers.get("Accept-Encoding", "")
    body = b"" if is_known else script.compressed if is_compressed else script.text
    response = HttpResponse(body, status=304 if is_known else 200, content_type="text/javascript; charset=utf-8")
    if is_compressed and not is_known:
        response.headers["Content-Encoding"] = "gzip"
    response.headers["Cache-Control"] = cache_control
    response.headers["ETag"] = etag
    response.headers["Access-Control-Allow-Origin"] = "*"  # integrity is checked of scripts that any page may read
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    patch_vary_headers(response, ["Accept-Encoding"])
    return response
