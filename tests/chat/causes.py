"""A collection in which one snippet for each cause is kept out of the context of an answer, by that cause alone."""

from models_app import snippets
from models_app.explain import Cause
from models_app.models import MLModel, TrainingSnippet
from models_app.retrieval import LIMIT
from tests.fakes.near_server import NearServer, answer_by, place

QUESTION = "What does a repair of the pump cost?"
FAR_QUESTION = "Does a voucher pay my bicycle in spring?"  # no snippet is near it in meaning
# Under which retrieval each cause is looked at, and for which question.
ASKED = {
    Cause.THRESHOLD: ("semantic", QUESTION),
    Cause.RELATIVE_CUTOFF: ("hybrid", QUESTION),
    Cause.TOO_FEW_WORDS: ("hybrid", FAR_QUESTION),
    Cause.DEPTH: ("hybrid", QUESTION),
    Cause.BUDGET: ("semantic", QUESTION),
    Cause.NO_VECTOR: ("semantic", QUESTION),
    Cause.NO_SHARED_TERM: ("keyword", QUESTION),
}
TITLES = {
    Cause.THRESHOLD: ("Fees", "Forty euros, whatever is broken.", 0.1),
    Cause.RELATIVE_CUTOFF: ("Parking", "What it costs. " + "Many other words on something else. " * 10, 0.0),
    Cause.TOO_FEW_WORDS: ("Vouchers", "A voucher is sold here.", 0.7),
    Cause.DEPTH: ("Old pumps", "What a repair of the pump costs, said in more words than all others take.", 0.5),
    Cause.BUDGET: ("Large pumps", "The repair of a pump, and its cost. " + "It takes its time. " * 60, 0.93),
    Cause.NO_VECTOR: ("Branches", "Forty of them.", None),
    Cause.NO_SHARED_TERM: ("Prices", "Forty euros for all that is broken.", 0.95),
}


class FarServer(NearServer):
    """All snippets are as far from a question about bicycles as they are near to any other."""

    def vector_of(self, text: str) -> list[float]:
        return [-1.0 if "bicycle" in text else 1.0, 0.0]


def teach_causes(model: MLModel, server: NearServer) -> dict[Cause, TrainingSnippet]:
    """Fill the model, which searches by both legs then; returns the snippet that each cause keeps out."""
    answer_by(model, server)
    model.retrieval, model.max_context_tokens = "hybrid", 200
    model.save()
    made = {cause: snippets.add(model, title, text) for cause, (title, text, _) in TITLES.items()}
    cosines = {made[cause].pk: cosine for cause, (_, _, cosine) in TITLES.items() if cosine is not None}
    for number in range(LIMIT + 5):
        other = snippets.add(model, f"Pump {number}", "The repair of a pump, and its cost.")
        cosines[other.pk] = 0.9
    place(model, cosines)
    return made
