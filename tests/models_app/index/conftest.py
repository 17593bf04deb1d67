"""The second model of the cast."""

import pytest

from models_app.models import MLModel


@pytest.fixture
def sales(acme_store) -> MLModel:
    """A second model of the same tenant."""
    return MLModel.objects.create(slug="sales", name="Sales")
