"""The command serve, as a process: one installation, one web application, one worker that is kept running."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.core.management import CommandError

from config.management.commands.serve import Command
from tests.conftest import PROJECT
from tests.fakes.website import Website, page
from tests.worker import PATIENCE_SECONDS, POLL_SECONDS, Installation


@pytest.fixture
def installation(tmp_path) -> Installation:
    return Installation(tmp_path)


@contextmanager
def serving(installation: Installation, *options: str) -> Iterator[tuple[subprocess.Popen, dict]]:
    """Run `serve --json` while the block does; yields the process and what it printed about itself."""
    errors = (installation.folder / "serve.log").open("a")
    command = [sys.executable, "manage.py", "serve", "--json", "--port", "0", *options]
    server = subprocess.Popen(
        command, cwd=PROJECT, env=installation.environment, stdout=subprocess.PIPE, stderr=errors, text=True
    )
    try:
        printed = server.stdout.readline()
        assert printed, log_of(installation)
        yield server, json.loads(printed)
    finally:
        server.terminate()
        try:
            server.wait(PATIENCE_SECONDS)
        finally:
            server.kill()
            errors.close()


def log_of(installation: Installation) -> str:
    return (installation.folder / "serve.log").read_text()


def refused(installation: Installation, *options: str) -> str:
    """Run `serve`, which must not start, and return what it said."""
    command = [sys.executable, "manage.py", "serve", *options]
    done = subprocess.run(
        command, check=False, cwd=PROJECT, env=installation.environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return done.stderr


def create_parser():
    return Command().create_parser("manage.py", "serve")


def workers_of(server: subprocess.Popen) -> list[int]:
    """Return the ids of the living processes that it started."""
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if parent_of(pid) == server.pid]


def wait_until(is_so: Callable[[], object]):
    end = time.monotonic() + PATIENCE_SECONDS
    while not (outcome := is_so()):
        assert time.monotonic() < end
        time.sleep(POLL_SECONDS)
    return outcome


def is_running(pid: int) -> bool:
    return parent_of(pid) is not None


def parent_of(pid: int) -> int | None:
    """Return the process' parent, or None if it has ended, as a zombie has."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            state, parent = stat.read().rpartition(")")[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state == "Z" else int(parent)


def test_it_serves_pages_imports_sites_and_keeps_its_worker_running(installation):
    with Website({"/": page("Home", "/a"), "/a": page("A")}) as website, serving(installation) as (server, printed):
        with urllib.request.urlopen(f"{printed['address']}accounts/login/") as response:
            assert response.status == 200
        assert printed["pid"] == server.pid
        installation.manage("create_tenant", "acme")
        first = wait_until(lambda: workers_of(server))
        installation.start_import(website.url("/"), retrieval="keyword")
        assert installation.wait_until(lambda job: job["state"] not in ("queued", "running"))["state"] == "done"
        os.kill(first[0], signal.SIGKILL)
        second = wait_until(lambda: [pid for pid in workers_of(server) if pid not in first])
        assert "The worker ended (exit code -9) and is started again" in log_of(installation)
        server.send_signal(signal.SIGINT)
        assert server.wait(PATIENCE_SECONDS) == 0
        wait_until(lambda: not is_running(second[0]))


def test_a_second_serve_on_the_same_data_is_refused_and_names_the_first(installation):
    with serving(installation, "--no-worker") as (server, printed):
        complaint = refused(installation, "--port", "0")
        assert f"process {server.pid} at {printed['address']}" in complaint
        assert "SITEWISE_DATA_DIR" in complaint
        assert workers_of(server) == []


def test_a_broken_control_database_is_refused_in_a_clear_line(tmp_path):
    broken = Installation(tmp_path)
    (tmp_path / "control.sqlite3").write_bytes(b"no database" * 1_000)
    assert f"The control database {tmp_path / 'control.sqlite3'} cannot be used" in refused(broken, "--port", "0")


def test_a_port_in_use_is_refused_in_a_clear_line(installation):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        complaint = refused(installation, "--port", str(port))
    assert f"Port {port} of 127.0.0.1 cannot be used: Address already in use" in complaint
    assert "--port" in complaint


@pytest.mark.parametrize("port", ["70000", "-1", "65536", "http", "9" * 5_000, "1.5"])
def test_a_number_that_is_no_port_is_refused(port):
    with pytest.raises(CommandError, match="must be a whole number from 0 to 65,535"):
        create_parser().parse_args([f"--port={port}"])


def test_every_port_can_be_asked_for():
    for port in (0, 80, 65_535):
        assert create_parser().parse_args([f"--port={port}"]).port == port


@pytest.mark.parametrize(
    ("host", "complaint"),
    [
        ("nosuch.invalid", "The address of nosuch.invalid is not known"),
        ("a..b", "The address of a..b is not known"),
        ("192.0.2.1", "Port 0 of 192.0.2.1 cannot be used: Cannot assign requested address"),
    ],
)
def test_a_host_that_is_not_this_machine_is_refused_with_what_to_do(installation, host, complaint):
    said = refused(installation, "--port", "0", "--host", host)
    assert complaint in said
    assert "Choose an address of this machine with --host" in said
    assert "Stop the program" not in said


def test_json_stays_one_document_while_the_worker_says_goodbye(installation):
    with Website({"/": page("Home")}) as website, serving(installation) as (server, _):
        installation.manage("create_tenant", "acme")
        installation.start_import(website.url("/"), retrieval="keyword")
        # A worker that has done a job heeds signals.
        installation.wait_until(lambda job: job["state"] == "done")
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE_SECONDS) == 0
        assert server.stdout.read() == ""
    assert "Warm shutdown" in log_of(installation)


def test_missing_model_files_and_a_store_that_cannot_be_used_are_told_and_the_rest_is_served(tmp_path):
    installation = Installation(tmp_path / "var", SITEWISE_MODELS_DIR=str(tmp_path / "no-models"))
    for tenant in ("acme", "globex"):
        installation.manage("create_tenant", tenant)
    next((installation.folder / "stores").glob("*.sqlite3")).write_bytes(b"no database at all" * 100)
    with serving(installation, "--no-worker") as (_, printed):
        told = " ".join(printed["warnings"])
        assert "fetch_models" in told and "Keyword" in told
        assert "acme" in told
        with urllib.request.urlopen(f"{printed['address']}accounts/login/") as response:
            assert response.status == 200


def test_the_worker_of_a_killed_serve_ends_by_itself(installation):
    with serving(installation) as (server, _):
        [worker] = wait_until(lambda: workers_of(server))
        server.kill()
        server.wait()
        wait_until(lambda: not is_running(worker))
