"""What tests of imports share."""

import pytest

from models_app.models import MLModel, Retrieval


@pytest.fixture
def model(support) -> MLModel:
    """Acme's model "support" with Keyword retrieval: what is imported is found at once, without vectors."""
    support.retrieval = Retrieval.KEYWORD
    support.save()
    return support
