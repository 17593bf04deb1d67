"""When a space is calibrated, when again, and what a threshold then keeps of foreign questions."""

import pytest

from models_app import index, snippets, vectors
from models_app.calibration import GROWTH, calibration_of, prior, refresh
from models_app.embedder import LOCAL_SPACE, space_of
from models_app.everyday import QUESTIONS
from models_app.models import MLModel, TrainingSnippet
from models_app.retrieval import retrieve
from tenants.store import activated
from tests.conftest import needs_local_embedder
from tests.fakes.near_server import NearServer, answer_by, place
from tests.fakes.openai_server import OpenAIServer, refusal

pytestmark = pytest.mark.django_db

EVERYDAY = QUESTIONS["en"][0]
SHOP = [
    ("Returns", "Unused goods may be sent back within 30 days for a full refund."),
    ("Opening hours", "The shop is open from Tuesday to Saturday, nine to six."),
    ("Fault ERR-1234", "ERR-1234 means that the pump is blocked by scale."),
    ("Delivery", "A van brings large furniture to your door within five days."),
    ("Payment", "We take cards and bank transfers; an invoice comes with the parcel."),
    ("Warranty", "All pumps have a warranty of two years from the day of purchase."),
    ("Descaling", "Fill the pump with vinegar and let it stand for an hour."),
    ("Newsletter", "Write to us when you want no more newsletters."),
]
FOREIGN = (
    "Who painted the ceiling of the Sistine Chapel?",
    "How do vaccines train the immune system?",
    "Which planet has the most moons?",
)


@pytest.fixture
def server():
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def shop(support):
    """A model that the local embedder made the vectors of."""
    needs_local_embedder()
    for title, text in SHOP:
        snippets.add(support, title, text)
    vectors.vectorise_missing(support)
    return support


def fill(model: MLModel, count: int, name: str = "Part") -> None:
    snippets.add_many(model, [TrainingSnippet(prompt=f"{name} {n}", completion="Steel.") for n in range(count)])


def choose(model: MLModel, server: OpenAIServer, embedding_model: str) -> None:
    model.embedding_model, model.provider_base_url, model.provider_key = embedding_model, server.url, "sk-own"
    model.save()


def times_calibrated(server: OpenAIServer) -> int:
    """Return how often the server was sent the everyday questions."""
    return sum(EVERYDAY in request.body["input"] for request in server.requests)


def stored(model: MLModel):
    return index.calibration_of(model.pk, space_of(model).name)


def test_vectors_are_calibrated_when_they_are_made(support, server):
    choose(support, server, "tiny")
    fill(support, 10)
    assert stored(support) is None
    assert calibration_of(support, space_of(support)) == prior(space_of(support).name)
    vectors.vectorise_missing(support)
    made = stored(support)
    assert (made.vectors, made.unrelated.shape) == (10, (len(QUESTIONS), 8))
    assert calibration_of(support, space_of(support)) == made


def test_it_is_made_anew_once_the_vectors_have_doubled_and_not_before(support, server):
    choose(support, server, "tiny")
    fill(support, 10)
    vectors.vectorise_missing(support)
    fill(support, 5, "Bolt")
    vectors.vectorise_missing(support)
    assert (times_calibrated(server), stored(support).vectors) == (1, 10)
    fill(support, 10 * (GROWTH - 1), "Nut")
    vectors.vectorise_missing(support)
    assert (times_calibrated(server), stored(support).vectors) == (2, 25)


def test_a_service_that_is_away_leaves_the_calibration_as_it_was(support, server):
    choose(support, server, "tiny")
    fill(support, 4)
    vectors.vectorise_missing(support)
    before = stored(support)
    ids = list(support.snippets.values_list("pk", flat=True))
    index.drop_vectors(support.pk, space_of(support).name, ids[1:])
    server.will(*[refusal(401)] * 9)
    refresh(support, space_of(support))
    assert stored(support) == before


def test_vectors_that_were_made_answer_though_their_space_could_not_be_calibrated(support, server):
    choose(support, server, "tiny")
    fill(support, 2)
    server.default_reply, usual = lambda request: _refuses_everyday(request, usual), server.default_reply
    vectors.vectorise_missing(support)
    assert (stored(support), snippets.vector_counts(support)) == (None, (2, 2))
    assert retrieve(support, "Part 1", mode="hybrid").degraded == ""


def _refuses_everyday(request, usual):
    return refusal(401) if EVERYDAY in request.body["input"] else usual(request)


def test_each_space_has_a_calibration_of_its_own(support, server):
    choose(support, server, "tiny")
    fill(support, 6)
    vectors.vectorise_missing(support)
    first, space = stored(support), space_of(support).name
    choose(support, server, "other")
    assert stored(support) is None
    assert index.calibration_of(support.pk, space) == first, "the old vectors answer until the new ones are made"
    vectors.vectorise_missing(support)
    assert stored(support).vectors == 6
    assert times_calibrated(server) == 2
    assert space not in index.space_names(support.pk), "it goes with its vectors"


def test_a_model_without_vectors_is_not_calibrated(support, server):
    choose(support, server, "tiny")
    refresh(support, space_of(support))
    fill(support, 3)
    refresh(support, space_of(support))
    assert (stored(support), server.requests) == (None, [])


def test_another_tenants_model_of_the_same_number_is_not_touched(support, globex, server):
    with activated(globex):
        other = MLModel.objects.create(pk=support.pk, slug="support", name="Support")
        choose(other, server, "tiny")
        fill(other, 3)
        vectors.vectorise_missing(other)
        before = stored(other)
    choose(support, server, "tiny")
    fill(support, 20)
    vectors.vectorise_missing(support)
    assert stored(support).vectors == 20
    with activated(globex):
        assert stored(other) == before
        assert before.vectors == 3


def test_the_local_models_vectors_are_calibrated_in_its_own_space(shop):
    made = index.calibration_of(shop.pk, LOCAL_SPACE.name)
    assert made.vectors == len(SHOP)
    assert 0.6 < made.start < 0.85, "e5's unrelated texts lie high"
    assert made.start == max(made.starts) == made.starts[list(QUESTIONS).index("en")]


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
@pytest.mark.parametrize("question", FOREIGN)
def test_a_foreign_question_finds_nothing(shop, mode, question):
    assert retrieve(shop, question, mode=mode).hits == ()


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
def test_what_answers_is_kept(shop, mode):
    asked = {"Can I get my money back?": "Returns", "when are you open": "Opening hours", "how to pay": "Payment"}
    assert {question: retrieve(shop, question, mode=mode).hits[0].title for question in asked} == asked


def test_hybrid_finds_an_exact_identifier_though_nothing_is_near_in_meaning(support):
    """Hybrid's own rule: without a near snippet, words of 2 × the threshold of the question's weight are enough."""
    with NearServer() as near:
        answer_by(support, near)
        for title, text in SHOP:
            snippets.add(support, title, text)
        place(support, dict.fromkeys(support.snippets.values_list("pk", flat=True), 0.0))
        assert [hit.title for hit in retrieve(support, "ERR-1234", mode="hybrid").hits] == ["Fault ERR-1234"]
        assert [hit.title for hit in retrieve(support, "what is ERR-1234?", mode="hybrid").hits] == ["Fault ERR-1234"]
        lost_in_words = "Which king of Denmark wore the pump ornaments at his coronation?"
        assert retrieve(support, lost_in_words, mode="keyword").hits != ()
        assert retrieve(support, lost_in_words, mode="hybrid").hits == ()
