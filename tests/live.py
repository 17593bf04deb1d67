"""The web application behind a real ASGI server on loopback, in a thread of the test process."""

import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn

from config.asgi import application

START_SECONDS = 20


@pytest.fixture
def live_url(transactional_db) -> Iterator[str]:
    """The address of the running application. Its threads see what the test has written, as nothing is rolled back."""
    config = uvicorn.Config(application, host="127.0.0.1", port=0, lifespan="off", log_level="warning")
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
