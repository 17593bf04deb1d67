"""axe-core, which knows the rules of WCAG that a program can check, run inside of a page."""

import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from playwright.sync_api import Page

from tests.conftest import needs

PACKAGE = "axe-core@4.14.1"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
INSTALL_SECONDS = 120


def violations(page: Page, within: str = "html") -> list[str]:
    """Return what the page breaks of WCAG 2.2 A and AA, one line a kind of element."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_script())  # not as a tag: the page's own policy would refuse it
    options = {"runOnly": {"type": "tag", "values": TAGS}}
    found = page.evaluate("([within, options]) => axe.run(within, options)", [within, options])["violations"]
    return [f"{rule['id']}: {node['target']} {node['failureSummary']}" for rule in found for node in rule["nodes"]]


@cache
def _script() -> str:
    """Return axe-core's source, which npm fetches; the test is skipped where it cannot."""
    needs(bool(shutil.which("npm")), "npm, which fetches axe-core")
    folder = Path(mkdtemp(prefix="sitewise-axe-"))
    command = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--silent", "--prefix", str(folder), PACKAGE]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=INSTALL_SECONDS)
        return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()
    except (subprocess.SubprocessError, OSError) as error:
        needs(False, f"axe-core ({error})")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
