"""A local embedding API of several models whose spaces disagree, so that an answer tells in which of them it was found.

A text belongs to the class of the first number in it; one without a number is far from all others. In each model's
space, a question lies on the class's own axis, and a passage on that of a class some steps further: what is nearest to
a question in one space is far in the others.
"""

import re

from tests.fakes.openai_server import OpenAIServer, Reply, Request

CLASSES = 100
STEPS = {"first": 0, "second": 7, "third": 13}  # of passages, by the model's name
DIMENSIONS = {"first": CLASSES + 1, "second": CLASSES + 1, "third": CLASSES + 28}
NUMBER = re.compile(r"\d+")


class EmbeddingServer(OpenAIServer):
    """Use it as a context manager. It also counts its answers' tokens, as such services do."""

    def default_reply(self, request: Request) -> Reply:
        model, texts = request.body["model"], request.body["input"]
        rows = [{"index": place, "embedding": vector_of(model, text)} for place, text in enumerate(texts)]
        tokens = sum(len(text.split()) for text in texts)
        return Reply(body={"data": rows, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}})

    def passages(self, model: str) -> list[str]:
        """Return the passages that were embedded by this model, in the order they came."""
        asked = [request.body for request in self.requests if request.body["model"] == model]
        return [text for body in asked for text in body["input"] if NUMBER.search(text) and not is_question(text)]


def passages_of(model: str, question: int, count: int) -> set[int]:
    """Return which of the passages numbered from 0 the question of this number finds in the model's space."""
    return {number for number in range(count) if (number + STEPS[model] - question) % CLASSES == 0}


def is_question(text: str) -> bool:
    return text.endswith("?")


def vector_of(model: str, text: str) -> list[int]:
    """Return the text's vector in the model's space."""
    found = NUMBER.search(text)
    steps = 0 if is_question(text) else STEPS[model]
    axis = (int(found[0]) + steps) % CLASSES if found else CLASSES
    return [int(place == axis) for place in range(DIMENSIONS[model])]
