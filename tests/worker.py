"""A whole installation of its own for tests that start and kill real processes."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from config.celery import WORKER_COMMAND
from tests.conftest import PROJECT

# A step that does not come in this time has gone wrong; it is no measure of how long anything should take.
PATIENCE_SECONDS = 90
POLL_SECONDS = 0.01


class Installation:
    """A data folder, the environment that leads there, and the processes that work on it."""

    def __init__(self, folder: Path, **environment: str):
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.environment = {
            **os.environ,
            "SITEWISE_DATA_DIR": str(folder),
            "SITEWISE_LEASE_SECONDS": "1",
            "CELERY_BROKER_URL": "",
            **environment,
        }

    def manage(self, *arguments: str) -> str:
        """Run one of manage.py's commands and return what it printed."""
        return self.run("manage.py", *arguments)

    def run(self, *arguments: str) -> str:
        """Run Python with these arguments and return what it printed."""
        command = [sys.executable, *arguments]
        done = subprocess.run(command, check=False, cwd=PROJECT, env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def python(self, *lines: str) -> str:
        """Run lines of Python inside tenant acme's store."""
        inside = ["from tenants.models import Tenant", "from tenants.store import activated"]
        inside += ["with activated(Tenant.objects.get(slug='acme')):", *(f"    {line}" for line in lines)]
        return self.manage("shell", "--no-imports", "-c", "\n".join(inside))

    def start_import(self, address: str, **behaviour) -> None:
        """Make acme's model "support" and an import that waits for a worker, as the dialog does."""
        self.python(
            "from crawler.crawl import start_import",
            "from models_app.models import MLModel",
            f"model = MLModel.objects.create(slug='support', name='Support', **{behaviour!r})",
            f"start_import(model, {address!r})",
        )

    @contextmanager
    def worker(self) -> Iterator[subprocess.Popen]:
        """Run a worker while the block does; it is killed at its end if it has not ended by then."""
        log = (self.folder / "worker.log").open("a")
        worker = subprocess.Popen(WORKER_COMMAND, cwd=PROJECT, env=self.environment, stdout=log, stderr=log)
        try:
            yield worker
        finally:
            worker.kill()
            worker.wait()
            log.close()

    def rows(self, query: str) -> list[tuple]:
        """Return rows of acme's store, read beside the worker."""
        store = next((self.folder / "stores").glob("*.sqlite3"))
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=20)) as connection:
            return connection.execute(query).fetchall()

    def job(self) -> dict:
        """Return the newest import's row."""
        names = "state", "phase", "done_count", "message", "lease"
        [row] = self.rows(f"SELECT {', '.join(names)} FROM crawler_import ORDER BY id DESC LIMIT 1")
        return dict(zip(names, row, strict=True))

    def wait_until(self, is_so: Callable[[dict], bool]) -> dict:
        """Return the import's row as soon as it is as wanted."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not is_so(job := self.job()):
            assert time.monotonic() < end, (job, (self.folder / "worker.log").read_text()[-2_000:])
            time.sleep(POLL_SECONDS)
        return job

    def kill_worker_when(self, phase: str, done_count: int, how: int = signal.SIGKILL) -> None:
        """Start a worker, and end it in the middle of the phase."""
        with self.worker() as worker:
            self.wait_until(lambda job: job["phase"] == phase and job["done_count"] >= done_count)
            worker.send_signal(how)
            worker.wait(PATIENCE_SECONDS)
        job = self.job()
        assert job["state"] in ("running", "queued") and job["phase"] == phase, f"the kill came too late: {job}"

    def finish(self) -> dict:
        """Start a worker and return the import's row when it has ended."""
        with self.worker():
            return self.wait_until(lambda job: job["state"] not in ("queued", "running"))

    def result(self) -> dict[str, list]:
        """Return all that the newest import and its model hold, in a form that can be compared."""
        return {
            "pages": self.rows(
                "SELECT url, final_url, state, reason, snippet_count FROM crawler_page"
                " WHERE job_id = (SELECT MAX(id) FROM crawler_import) ORDER BY id"
            ),
            "snippets": self.rows(
                "SELECT uri, source, position, prompt, completion, token_count, embedded_in"
                " FROM models_app_trainingsnippet ORDER BY uri, source, position"
            ),
        }

    def index_problems(self) -> list:
        """Return what the index's own check finds wrong."""
        printed = self.python(
            "import json",
            "from models_app.index import check_model",
            "from models_app.models import MLModel",
            "print(json.dumps([str(problem) for problem in check_model(MLModel.objects.get().pk)]))",
        )
        return json.loads(printed)
