"""What all tests of accounts and workspaces begin with."""

import pytest
from django.core.cache import cache


@pytest.fixture(autouse=True)
def no_counted_tries():
    """Each test starts with no try counted against the limits."""
    cache.clear()
