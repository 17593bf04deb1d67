"""Measures what a small host needs: PSS of `serve`, web and worker, after an import and a question. Linux only."""

import os
import tempfile
import threading
import urllib.request
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import django

from tests import environment  # noqa: F401  the benchmark has settings and a data folder of its own

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from tests.config.test_serve import serving  # noqa: E402
from tests.conftest import PROJECT  # noqa: E402
from tests.worker import Installation  # noqa: E402

MODEL = "support"


def family_of(pid: int) -> list[int]:
    """Return the process and all its descendants."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    threads = Path(f"/proc/{pid}/task").iterdir()
    for thread in threads:
        children += [child for child in (thread / "children").read_text().split() if child not in children]
    return [pid, *(member for child in children for member in family_of(int(child)))]


def pss_mb(pid: int) -> float:
    """Return the process' proportional set size: its own pages, and its share of those it has with others."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def ask(address: str, key: str, question: str) -> None:
    body = f'{{"model": "{MODEL}", "messages": [{{"role": "user", "content": "{question}"}}]}}'
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}v1/chat/completions", body.encode(), headers)
    assert b"129 EUR" in urllib.request.urlopen(request, timeout=60).read()


def print_memory(pid: int, when: str) -> None:
    sizes = {member: pss_mb(member) for member in family_of(pid)}
    each = ", ".join(f"{size:.0f}" for size in sizes.values())
    print(f"{when:<42} {sum(sizes.values()):>5.0f} MB PSS in {len(sizes)} processes ({each})")


def main() -> None:
    site = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=PROJECT / "crawler" / "sample_site")
    )
    threading.Thread(target=site.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        installation = Installation(Path(folder), SITEWISE_ALLOW_LOOPBACK="1")
        installation.manage("create_tenant", "acme")
        key = installation.manage(
            "shell",
            "--no-imports",
            "-c",
            "from tenants.models import ApiKey, Tenant;"
            f"print(ApiKey.mint(tenant=Tenant.objects.get(), name='bench', kind='secret', model_slugs=['{MODEL}'])[1])",
        ).strip()
        with serving(installation) as (server, printed):
            print_memory(server.pid, "web and worker, just started")
            installation.start_import(f"http://127.0.0.1:{site.server_port}/")
            installation.wait_until(lambda job: job["state"] == "done")
            print_memory(server.pid, "after an import of 14 pages with vectors")
            ask(printed["address"], key, "How much is a full service?")
            print_memory(server.pid, "after a question as well")


if __name__ == "__main__":
    main()
