"""Retrieval end to end: meaning, words, both, and what happens when a leg is away."""

import numpy as np
import pytest

from models_app import index, snippets, vectors
from models_app.embedder import space_of
from models_app.models import MLModel
from models_app.retrieval import retrieve
from tenants.store import activated
from tests.conftest import needs_local_embedder

FACTS = [
    ("Returns", "Unused goods may be sent back within 30 days for a full refund."),
    ("Opening hours", "The shop is open from Tuesday to Saturday, nine to six."),
    ("Fault ERR-1234", "ERR-1234 means that the pump is blocked by scale."),
    ("Delivery", "A van brings large furniture to your door within five days."),
]


def teach(model) -> None:
    for title, text in FACTS:
        snippets.add(model, title, text)


@pytest.fixture
def taught(support):
    needs_local_embedder()
    teach(support)
    vectors.vectorise_missing(support)
    return support


def first(model, question: str, mode: str) -> str:
    return retrieve(model, question, mode=mode).hits[0].title


def test_a_paraphrase_without_a_shared_word_is_found_by_meaning(taught):
    question = "I don't like it, can I get my money again?"
    assert retrieve(taught, question, mode="keyword").hits == ()
    assert first(taught, question, "semantic") == "Returns"
    assert first(taught, question, "hybrid") == "Returns"


def test_a_rare_code_is_found_by_its_word(taught):
    assert first(taught, "ERR-1234", "keyword") == "Fault ERR-1234"
    assert first(taught, "what is ERR-1234", "hybrid") == "Fault ERR-1234"


def test_a_hybrid_hit_tells_both_legs_ranks_and_its_distance(taught):
    hit = retrieve(taught, "when is the shop open", mode="hybrid").hits[0]
    assert (hit.title, hit.keyword_rank, hit.semantic_rank) == ("Opening hours", 1, 1)
    assert hit.fused_score == pytest.approx(2), "the best of both legs has the whole share of each"
    assert 0 < hit.distance < 0.7


def test_a_threshold_of_one_leaves_nothing_to_the_semantic_leg(taught):
    taught.threshold = 1
    assert retrieve(taught, "when is the shop open", mode="semantic").hits == ()


def test_without_vectors_the_keyword_leg_answers_and_says_so(support):
    teach(support)
    retrieved = retrieve(support, "open on Tuesday", mode="semantic")
    assert retrieved.hits[0].title == "Opening hours"
    assert "Vectorise" in retrieved.degraded


def test_an_embedding_service_that_is_away_leaves_the_keyword_leg(support):
    teach(support)
    support.embedding_model = "far-away"
    support.provider_base_url = "http://127.0.0.1:9/v1"
    support.save()
    ids = list(support.snippets.values_list("pk", flat=True))
    index.put_vectors(support.pk, space_of(support).name, ids, np.eye(len(ids)))
    retrieved = retrieve(support, "ERR-1234", mode="hybrid")
    assert retrieved.hits[0].title == "Fault ERR-1234"
    assert "no embeddings for now" in retrieved.degraded


def test_a_model_without_snippets_finds_nothing_and_is_not_degraded(support):
    assert retrieve(support, "anything") == retrieve(support, "anything", mode="semantic")
    assert retrieve(support, "anything").hits == ()
    assert retrieve(support, "anything").degraded == ""


def test_two_tenants_with_the_same_content_have_results_of_their_own(acme, globex):
    for tenant, extra in ((acme, 0), (globex, 40)):
        with activated(tenant):
            model = MLModel.objects.create(slug="support", name="Support", retrieval="keyword")
            teach(model)
            for number in range(extra):
                snippets.add(model, f"Pump {number}", "A pump that is blocked by scale.")
    scores = {}
    for tenant in (acme, globex):
        with activated(tenant):
            hit = retrieve(MLModel.objects.get(), "blocked pump").hits[0]
            scores[tenant.slug] = hit.bm25
    assert scores["acme"] > scores["globex"] > 0
