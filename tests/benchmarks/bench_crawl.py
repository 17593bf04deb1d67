"""Imports a site of 1,169 pages from this very machine, beside Scrapy fetching the same site and saving its bytes.

    python -m tests.benchmarks.bench_crawl [--site FOLDER] [--scrapy PYTHON] [--runs NUMBER]

The site is Debian's package postgresql-doc-15, which apt-get fetches unless a folder is given. Ours does the whole
import: Keyword retrieval, splits by headings, a fresh store. Scrapy comes with requirements-bench.txt; without it the
comparison is left out. The two take turns, each run beside the next of the other, and the middle ratio counts.
"""

import argparse
import asyncio
import mimetypes
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from statistics import median

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE, PAGES_OF_PACKAGE = "postgresql-doc-15", "usr/share/doc/postgresql-doc-15/html"
EARLY_PAGES = 300
POLL_SECONDS = 0.1
HOW_TO_COMPARE = "Scrapy is not installed: .venv/bin/pip install -r requirements-bench.txt"


@dataclass(frozen=True)
class Run:
    """One crawl: its pages, how long it took, and the most memory of all its processes, early and at the end.

    The seconds of computing hold on a busy machine too.
    """

    pages: int
    seconds: float
    computing_seconds: float
    early_mb: float = 0.0
    most_mb: float = 0.0

    @property
    def pace(self) -> float:
        return self.pages / self.seconds

    @property
    def memory(self) -> str:
        return f"{self.early_mb:.0f} MB after {EARLY_PAGES} pages, {self.most_mb:.0f} MB in all"

    def __str__(self) -> str:
        return (
            f"{self.pages:5} pages in {self.seconds:6.1f} s: {self.pace:6.1f} pages a second "
            f"({1000 * self.computing_seconds / self.pages:.0f} ms of computing a page)"
        )


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--site", type=Path, help="a folder of HTML pages instead of Debian's package")
    options.add_argument("--scrapy", metavar="PYTHON", default=sys.executable, help="the Python that has Scrapy")
    options.add_argument("--runs", type=int, default=3, help="how often each of the two reads the site")
    chosen = options.parse_args(sys.argv[1:])
    with tempfile.TemporaryDirectory() as scratch:
        site = chosen.site or fetch_package(Path(scratch))
        if site is None:
            print(f"The package {PACKAGE} cannot be fetched here: apt-get is missing or reaches no mirror.")
            return
        has_scrapy = not subprocess.run(
            [chosen.scrapy, "-c", "import scrapy"], check=False, capture_output=True
        ).returncode
        with served(site) as (address, page_count):
            ratios = []
            for run in range(chosen.runs):
                ours = import_with_sitewise(address, page_count, Path(scratch) / f"ours{run}")
                print(f"Sitewise imported   {ours}")
                print(f"its most memory     {ours.memory}")
                if has_scrapy:
                    theirs = save_with_scrapy(chosen.scrapy, address, Path(scratch) / f"theirs{run}")
                    print(f"Scrapy saved        {theirs}")
                    ratios.append(ours.pace / theirs.pace)
        told = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"Sitewise / Scrapy   {median(ratios):.2f} (of {told})" if ratios else HOW_TO_COMPARE)


def fetch_package(folder: Path) -> Path | None:
    """Return the folder of the package's pages, unpacked below the given one, or None where it cannot be had."""
    try:
        subprocess.run(["apt-get", "download", "-qq", PACKAGE], cwd=folder, check=True, capture_output=True)
        archive = next(folder.glob(f"{PACKAGE}_*.deb"))
        subprocess.run(["dpkg", "-x", archive, folder], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return folder / PAGES_OF_PACKAGE


@contextmanager
def served(site: Path) -> Iterator[tuple[str, Synchronized]]:
    """Serve the folder from memory, in a process of its own; yields its address and how many pages it has sent."""
    spawning = multiprocessing.get_context("spawn")
    page_count, port = spawning.Value("i", 0), spawning.Value("i", 0)
    server = spawning.Process(target=serve, args=(site, page_count, port), daemon=True)
    server.start()
    while not port.value:
        time.sleep(POLL_SECONDS)
    yield f"http://127.0.0.1:{port.value}/", page_count
    server.terminate()
    server.join()


def serve(site: Path, page_count: Synchronized, port: Synchronized) -> None:
    """Answer from memory with next to no work, as a server that takes a processor would measure itself."""
    files = {f"/{path.relative_to(site).as_posix()}": path.read_bytes() for path in site.rglob("*") if path.is_file()}
    files["/"] = files["/index.html"]
    answers = {path: answer_of(path, body) for path, body in files.items()}
    missing = answer_of("", b"", "404 Not Found")

    class Answering(asyncio.Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:
            self._transport, self._asked = transport, b""

        def data_received(self, received: bytes) -> None:
            *requests, self._asked = (self._asked + received).split(b"\r\n\r\n")
            for request in requests:
                path = request.split(b" ", 2)[1].partition(b"?")[0].decode()
                page_count.value += path in answers
                self._transport.write(answers.get(path, missing))

    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
        port.value = server.sockets[0].getsockname()[1]
        await server.serve_forever()

    asyncio.run(run())


def answer_of(path: str, body: bytes, status: str = "200 OK") -> bytes:
    """Return the bytes of the whole answer."""
    kind = mimetypes.guess_type(path)[0] or "text/html"
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def import_with_sitewise(address: str, page_count: Synchronized, folder: Path) -> Run:
    """Import the site into a new model, as the command does, and look at the memory meanwhile."""
    folder.mkdir()
    page_count.value = 0
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SITEWISE_")}
    environment |= {"SITEWISE_DATA_DIR": str(folder), "SITEWISE_ALLOW_LOOPBACK": "1", "CELERY_BROKER_URL": ""}
    manage = [sys.executable, "manage.py"]
    subprocess.run([*manage, "create_tenant", "acme"], cwd=PROJECT, env=environment, check=True, capture_output=True)
    early_mb = most_mb = 0.0
    started, computed = time.monotonic(), computing_seconds()
    command = [*manage, "import_site", "acme/docs", address, "--retrieval", "keyword"]
    with subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=subprocess.DEVNULL) as importing:
        while importing.poll() is None:
            most_mb = max(most_mb, memory_mb(importing.pid))
            early_mb = most_mb if page_count.value <= EARLY_PAGES else early_mb
            time.sleep(POLL_SECONDS)
    seconds = time.monotonic() - started
    if importing.returncode:
        raise SystemExit("The import failed.")
    return Run(page_count.value, seconds, computing_seconds() - computed, early_mb, most_mb)


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process and its descendants, in megabytes; 0 once it has ended."""
    try:
        resident = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "VmRSS" in line)
        children = [child for task in Path(f"/proc/{pid}/task").iterdir() for child in children_of(task)]
    except (OSError, StopIteration):
        return 0.0
    return int(resident.split()[1]) / 1024 + sum(memory_mb(int(child)) for child in children)


def children_of(task: Path) -> list[str]:
    """Return the ids of the processes that the thread has started."""
    return (task / "children").read_text().split()


def computing_seconds() -> float:
    """Return what the processes that this one started and that have ended took of the processors."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def save_with_scrapy(python: str, address: str, folder: Path) -> Run:
    folder.mkdir()
    started, computed = time.monotonic(), computing_seconds()
    script = Path(__file__).with_name("scrapy_saves.py")
    saved = subprocess.run([python, script, address, folder], check=True, capture_output=True, text=True)
    return Run(int(saved.stdout), time.monotonic() - started, computing_seconds() - computed)


if __name__ == "__main__":
    main()
