"""The web application on loopback as `serve` runs it, in a thread of the test process."""

import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn

from config.management.commands.serve import web_server_config

START_SECONDS = 20


@pytest.fixture
def live_url(transactional_db) -> Iterator[str]:
    """The address of the running application. Its threads see what the test has written, as nothing is rolled back."""
    config = web_server_config()
    config.host, config.port = "127.0.0.1", 0
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + START_SECONDS
    while not server.started:
        assert thread.is_alive() and time.monotonic() < deadline, "the web server did not start"
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(START_SECONDS)
