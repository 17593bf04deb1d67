"""Runs a whole installation: the web application in this process, and one worker beside it that is kept running."""

import contextlib
import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import uvicorn
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from config.celery import PARENT_VARIABLE, WORKER_COMMAND
from models_app.model_files import ModelFilesMissing, embedder_files
from tenants.installation import ControlDatabaseBroken, prepare
from tenants.public_addresses import LOOPBACK_NAMES
from tenants.reporting import whole_number
from tenants.texts import json_line

DEFAULT_PORT, LAST_PORT = 8000, 65_535
BACKLOG = 128
# A worker that ends is started again after 1, 2, 4 ... seconds; after so long a run it has merely failed once.
MAX_PAUSE_SECONDS, STEADY_SECONDS = 30, 60
# A job hands itself back between two steps; a step that takes longer is cut off, and done again after the restart.
STOP_SECONDS = 15
OPEN_ANSWERS_SECONDS = 5
OTHER_HOST = "Choose an address of this machine with --host, such as 127.0.0.1, or 0.0.0.0 for all it has."
REMEDIES = {
    errno.EADDRINUSE: "Stop the program that uses it, or choose another with --port.",
    errno.EACCES: "Ports under 1024 are the administrator's: choose a higher one with --port.",
    errno.EADDRNOTAVAIL: OTHER_HOST,
}


class Command(BaseCommand):
    help = "Run Sitewise: the web application and one worker, until Ctrl-C."

    def add_arguments(self, parser):
        site = urlsplit(settings.SITEWISE_URL)
        is_own = site.hostname in LOOPBACK_NAMES and site.scheme == "http"
        parser.add_argument("--host", default="127.0.0.1", help="Address to listen on (default: 127.0.0.1).")
        port = (is_own and site.port) or DEFAULT_PORT
        parser.add_argument("--port", type=whole_number(0, LAST_PORT), default=port, help="0: any free one.")
        parser.add_argument("--no-worker", action="store_true", help="Workers run elsewhere.")
        parser.add_argument("--json", action="store_true", help="Print address and warnings as one JSON document.")

    def handle(self, *, host, port, no_worker, json, **options):
        with _only_one() as note_address, _listen(host, port) as listener:
            address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/"
            note_address(address)
            warnings = [*_unusable_stores(), *_missing_model_files()]
            self._say(address, warnings, json)
            with contextlib.nullcontext() if no_worker else _running_worker(self._warn):
                _serve(listener)

    def _say(self, address: str, warnings: list[str], as_json: bool) -> None:
        if as_json:
            self.stdout.write(json_line({"address": address, "pid": os.getpid(), "warnings": warnings}))
        else:
            for warning in warnings:
                self._warn(warning)
            self.stdout.write(f"Sitewise is at {address} (Ctrl-C stops it)")
        self.stdout.flush()

    def _warn(self, text: str) -> None:
        self.stderr.write(self.style.WARNING(text))


@contextmanager
def _only_one() -> Iterator[Callable[[str], None]]:
    """Hold the data folder's lock, and yield the function that writes this process' address into it."""
    with (settings.SITEWISE_DATA_DIR / "serve.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise CommandError(
                f"The data in {settings.SITEWISE_DATA_DIR} is served already, by {file.read() or 'another process'}. "
                "Stop that one first, or set SITEWISE_DATA_DIR to another folder."
            ) from error

        def note_address(address: str) -> None:
            file.truncate(0)
            file.write(f"process {os.getpid()} at {address}")
            file.flush()

        note_address("")
        yield note_address


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens already: nobody else takes the port while the rest starts."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no host name"
        raise CommandError(f"The address of {host} is not known: {reason}. {OTHER_HOST}") from error
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        advice = REMEDIES.get(error.errno, "Choose another with --port.")
        raise CommandError(f"Port {port} of {host} cannot be used: {os.strerror(error.errno)}. {advice}") from error


def _unusable_stores() -> list[str]:
    """Bring the installation up to date; returns what is wrong with the stores that could not be."""
    try:
        return [str(failure) for failure in prepare()]
    except ControlDatabaseBroken as error:
        raise CommandError(str(error)) from error
    finally:
        connections.close_all()


def _missing_model_files() -> list[str]:
    if settings.SITEWISE_EMBEDDING_URL:
        return []
    try:
        embedder_files()
    except ModelFilesMissing as error:
        return [f"{error} Until then only Keyword retrieval finds anything."]
    return []


@contextmanager
def _running_worker(warn: Callable[[str], None]) -> Iterator[None]:
    worker = WorkerProcess(warn)
    worker.start()
    try:
        yield
    finally:
        worker.stop()


def web_server_config() -> uvicorn.Config:
    """Return how the web application is served; answers that are being streamed get a moment to finish at the end."""
    return uvicorn.Config(
        "config.asgi:application",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # tenants/visitors.py reads them, under whatever server this runs
        timeout_graceful_shutdown=OPEN_ANSWERS_SECONDS,
    )


def _serve(listener: socket.socket) -> None:
    """Serve the web application until a signal to end."""
    # uvicorn raises the signal again once it has ended: by then it has done its work.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    uvicorn.Server(web_server_config()).run(sockets=[listener])


class WorkerProcess:
    """Keeps one worker running until it is told to stop; a worker that dies is started again."""

    def __init__(self, warn: Callable[[str], None]):
        self._warn = warn
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen | None = None
        self._thread = threading.Thread(target=self._keep, name="keep-worker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the worker: it hands its jobs back first, if they come to a step in time."""
        with self._lock:
            self._stopping.set()
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._thread.join()

    def _keep(self) -> None:
        pause_seconds = 1
        while self._launch():
            started = time.monotonic()
            code = self._process.wait()
            if self._stopping.is_set():
                return
            if time.monotonic() - started > STEADY_SECONDS:
                pause_seconds = 1
            self._warn(f"The worker ended (exit code {code}) and is started again in {pause_seconds} s.")
            self._stopping.wait(pause_seconds)
            pause_seconds = min(2 * pause_seconds, MAX_PAUSE_SECONDS)

    def _launch(self) -> bool:
        with self._lock:
            if self._stopping.is_set():
                return False
            # A group of its own: Ctrl-C in the terminal reaches this process alone, which then ends the worker.
            self._process = subprocess.Popen(  # noqa: S603 -- our own command
                WORKER_COMMAND,
                cwd=settings.BASE_DIR,
                env={**os.environ, PARENT_VARIABLE: str(os.getpid())},
                process_group=0,
                # What is printed here is this process' own: with --json one document and nothing else.
                stdout=sys.stderr,
            )
            return True
