"""What tests of the chat app share."""

import pytest

from tests.chat.causes import FarServer, teach_causes


@pytest.fixture
def far_server():
    with FarServer() as running:
        yield running


@pytest.fixture
def causes(support, far_server):
    """The snippets that each cause keeps out, in Acme's model "support"."""
    return teach_causes(support, far_server)
