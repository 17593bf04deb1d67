"""A store of an earlier version: what it knows stands and answers after its migration as it did before."""

import pytest
from django.core.management import call_command

from models_app import index, snippets, vectors
from models_app.models import MLModel
from tenants.store import activated, active_store, migrate_store
from tests.fakes.embedding_server import EmbeddingServer
from tests.models_app.test_switching import COUNT, answers, choose, teach


@pytest.fixture
def server():
    with EmbeddingServer() as running:
        yield running


def migrate_to(number: str) -> None:
    call_command("migrate", "models_app", number, database=active_store().alias, verbosity=0)


def test_vectors_that_bore_a_models_name_alone_bear_their_providers_too(acme, server, settings):
    """Of three models: at their own provider, at the operator's, and with vectors that nobody can ask any more."""
    settings.SITEWISE_EMBEDDING_URL, settings.SITEWISE_EMBEDDING_MODEL = server.url, "second"
    with activated(acme):
        own, operators, left = (MLModel.objects.create(slug=name, name=name) for name in ("own", "operators", "left"))
        choose(own, "first", provider_base_url=server.url)
        for model in (own, operators, left):
            teach(model, COUNT)
            vectors.vectorise_missing(model)
        names = [index.space_names(model.pk) for model in (own, operators)]
        choose(left, "third", provider_base_url=server.url)
        migrate_to("0005")
        assert set(own.snippets.values_list("embedded_in", flat=True)) == {"first"}
        assert set(left.snippets.values_list("embedded_in", flat=True)) == {"second"}
    migrate_store(acme)
    with activated(acme):
        assert [index.space_names(model.pk) for model in (own, operators)] == names
        assert (answers(own), answers(operators)) == ("first", "second")
        assert vectors.vectorise_missing(own) == vectors.vectorise_missing(operators) == 0
        assert snippets.vector_counts(left) == (0, COUNT)
        assert vectors.vectorise_missing(left) == COUNT
        assert answers(left) == "third"
        assert [index.check_model(model.pk) for model in (own, operators, left)] == [[], [], []]
