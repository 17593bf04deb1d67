"""A real worker sums up a conversation that was held in another process."""

import json
import time

import pytest

from tests.fakes.openai_server import OpenAIServer, whole
from tests.worker import PATIENCE_SECONDS, Installation


@pytest.fixture
def llm():
    class Server(OpenAIServer):
        def default_reply(self, request):
            if request.body["model"] == "cheap":
                return whole(json.dumps({"summary": "Ann, order HB-2041; lamps 1, 2."}))
            return super().default_reply(request)

    with Server() as running:
        yield running


@pytest.fixture
def installation(tmp_path):
    made = Installation(tmp_path / "home", SITEWISE_ALLOW_LOOPBACK="1")
    made.manage("migrate", "--verbosity", "0")
    made.manage("create_tenant", "acme", "--name", "Acme")
    return made


def test_a_worker_sums_up_what_a_web_process_has_no_room_for(installation, llm):
    installation.python(
        "from chat.answer import Asked, answer_now",
        "from models_app.models import MLModel",
        f"model = MLModel(slug='s', name='S', retrieval='keyword', llm='big', splitter_llm='cheap', "
        f"provider_base_url={llm.url!r}, compresses_history=True, max_session_items=4)",
        "model.provider_key = 'k'",
        "model.save()",
        "answer_now(Asked(model, 'I am Ann, order HB-2041', session_key='k'))",
        "[answer_now(Asked(model, f'Lamp {number}?', session_key='k')) for number in range(1, 4)]",
    )
    with installation.worker():
        end = time.monotonic() + PATIENCE_SECONDS
        while not (summaries := installation.rows("SELECT summary, memory FROM chat_session WHERE summary <> ''")):
            assert time.monotonic() < end, (installation.folder / "worker.log").read_text()[-2_000:]
            time.sleep(0.1)
    [(summary, memory)] = summaries
    assert summary == "Ann, order HB-2041; lamps 1, 2."
    assert len(json.loads(memory)) <= 2
