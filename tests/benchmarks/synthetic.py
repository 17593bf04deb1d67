"""Makes texts, questions and vectors of any number, the same in each run: what speed is measured on.

Words fall off as in a language (Zipf), every hundred texts share a topic with words of its own, and so do their
vectors. Says nothing of quality. Needs numpy alone, as other engines' environments read it, too.
"""

from dataclasses import dataclass

import numpy as np

VOCABULARY = 30_000
TOPIC_WORDS = 40
TEXTS_A_TOPIC = 100
LENGTH = 95  # words of a text
TITLE_LENGTH = 5
SPREAD = 0.8  # how far a text's vector lies from its topic's, against how long that is
# The most frequent words are English ones: an engine that leaves out what says nothing shall have it to leave out.
FUNCTION_WORDS = """
the of and to in a is that for it as was with be by on not he i this are or his from at which but have an had
they you were their one all we can her has there been if more when will would who so no what how do
""".split()  # noqa: SIM905
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]


@dataclass(frozen=True)
class Text:
    """A title and a text."""

    title: str
    text: str


def word(number: int) -> str:
    """Return the word of this number; the frequent ones are short."""
    if number < len(FUNCTION_WORDS):
        return FUNCTION_WORDS[number]
    letters = SYLLABLES[number % len(SYLLABLES)]
    while number := number // len(SYLLABLES):
        letters += SYLLABLES[number % len(SYLLABLES)]
    return letters


def make_texts(count: int, first: int = 0) -> list[Text]:
    """Return the texts with the numbers first to first + count; text i is on topic i // 100."""
    words, texts = [word(number) for number in range(VOCABULARY)], []
    for number in range(first, first + count):
        chance = np.random.default_rng([1, number])
        common = _frequent(chance, LENGTH)
        is_topical = chance.random(LENGTH) < 0.3
        chosen = np.where(is_topical, chance.choice(_topic(number // TEXTS_A_TOPIC), LENGTH), common)
        title = chance.choice(_topic(number // TEXTS_A_TOPIC), TITLE_LENGTH)
        texts.append(Text(" ".join(words[each] for each in title), " ".join(words[each] for each in chosen)))
    return texts


def make_questions(count: int, texts: int) -> list[str]:
    """Return questions of eight words, question i on topic i: three of its topic's words among frequent ones."""
    questions = []
    for number in range(count):
        chance = np.random.default_rng([2, number])
        chosen = [*_frequent(chance, 5), *chance.choice(_topic(number % topics_of(texts)), 3, replace=False)]
        questions.append(" ".join(word(int(each)) for each in chosen))
    return questions


def make_vectors(count: int, dimensions: int, first: int = 0) -> np.ndarray:
    """Return the unit vectors of the texts with these numbers, shape (count, dimensions)."""
    topics = np.arange(first, first + count) // TEXTS_A_TOPIC
    noise = np.random.default_rng([3, first]).standard_normal((count, dimensions), np.float32)
    centres = np.stack([_centre(topic, dimensions) for topic in range(topics[0], topics[-1] + 1)])
    return _units(centres[topics - topics[0]] + SPREAD * noise)


def make_question_vectors(count: int, dimensions: int, texts: int) -> np.ndarray:
    """Return the unit vectors of the questions, shape (count, dimensions)."""
    noise = np.random.default_rng(4).standard_normal((count, dimensions), np.float32)
    return _units(np.stack([_centre(number % topics_of(texts), dimensions) for number in range(count)]) + noise)


def topics_of(texts: int) -> int:
    return max(1, texts // TEXTS_A_TOPIC)


def _topic(number: int) -> np.ndarray:
    """Return the words of a topic: rarer ones."""
    return np.random.default_rng([5, number]).integers(300, VOCABULARY, TOPIC_WORDS)


def _frequent(chance: np.random.Generator, count: int) -> np.ndarray:
    """Return words as frequent as their rank says: the first one is a fifteenth of a text, about what "the" is."""
    return (VOCABULARY ** chance.random(count)).astype(int) - 1


def _centre(topic: int, dimensions: int) -> np.ndarray:
    return np.random.default_rng([6, topic]).standard_normal(dimensions, np.float32)


def _units(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
