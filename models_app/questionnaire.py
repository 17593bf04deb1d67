"""What a visitor is asked before the chat: read from the few lines that the owner writes.

A line is a question; lines below it that begin with "- " are the choices it offers. Without any it takes free text.
"""

from collections.abc import Iterator
from dataclasses import dataclass

CHOICE_MARKS = ("- ", "* ", "• ")
MOST_QUESTIONS = 10
MOST_CHOICES = 12
LONGEST_LINE = 200  # characters of a question or a choice
LONGEST_ANSWER = 500  # characters of what a visitor writes


class QuestionnaireRefused(ValueError):
    """The lines are no questionnaire; the text says which line, and what to write instead."""


@dataclass(frozen=True)
class Question:
    """One question, and the choices it offers; none: the visitor answers in their own words."""

    text: str
    choices: tuple[str, ...] = ()

    def accepts(self, answer: str) -> bool:
        """Return whether a visitor may have given this answer."""
        return len(answer) <= LONGEST_ANSWER and (not self.choices or answer in self.choices)


def questions_of(text: str) -> tuple[Question, ...]:
    """Return the questions of a stored text, in order; a choice that stands below no question is one itself."""
    questions: list[Question] = []
    for _, is_choice, words in _lines(text):
        if is_choice and questions:
            last = questions[-1]
            questions[-1] = Question(last.text, (*last.choices, words))
        else:
            questions.append(Question(words))
    return tuple(questions)


def refuse_bad_questionnaire(text: str) -> None:
    """Raise QuestionnaireRefused for a text that would not ask what its writer means, or more than anybody answers."""
    is_first = True
    for number, is_choice, words in _lines(text):
        if is_choice and is_first:
            raise QuestionnaireRefused(f"Line {number} is a choice, but no question stands above it.")
        if len(words) > LONGEST_LINE:
            raise QuestionnaireRefused(f"Line {number} has {len(words)} characters; at most {LONGEST_LINE} fit.")
        is_first = False
    questions = questions_of(text)
    if len(questions) > MOST_QUESTIONS:
        raise QuestionnaireRefused(f"These are {len(questions)} questions; at most {MOST_QUESTIONS} are asked.")
    for question in questions:
        _refuse_bad_choices(question)


def _refuse_bad_choices(question: Question) -> None:
    if len(question.choices) == 1:
        raise QuestionnaireRefused(f"“{question.text}” offers one choice only: add another, or take its “- ” away.")
    if len(question.choices) > MOST_CHOICES:
        raise QuestionnaireRefused(f"“{question.text}” offers more than {MOST_CHOICES} choices.")
    if len(set(question.choices)) < len(question.choices):
        raise QuestionnaireRefused(f"“{question.text}” offers the same choice twice.")


def _lines(text: str) -> Iterator[tuple[int, bool, str]]:
    """Yield each line that says something: its number, whether it is a choice, and its words."""
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.strip()
        mark = next((mark for mark in CHOICE_MARKS if words.startswith(mark)), "")
        words = words.removeprefix(mark).strip()
        if words:
            yield number, bool(mark), words
