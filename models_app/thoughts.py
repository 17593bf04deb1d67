"""Keeps a reasoning LLM's thoughts out of its answer: what stands between think tags, however it is cut into pieces.

A tag counts where a line begins, outside fenced code; in a sentence or a code span it is a word of the answer.
"""

import re

OPENINGS = ("<think>", "<thinking>")
FENCES = ("```", "~~~")
LONE_CLOSING = re.compile(r"(?:[^`\n]|`[^`\n]*`)*?</think(?:ing)?>")
# Their chat templates write the opening tag into the prompt, so that the answer starts in the middle of the thoughts.
UNOPENED = re.compile(r"deepseek-r1|qwq|thinking", re.IGNORECASE)


class ThoughtFilter:
    """Passes an answer on piece by piece, without its thoughts and the blanks in front of it."""

    def __init__(self, llm_name: str = ""):
        self._held = ""  # what cannot be judged before more has come
        self._withheld = ""  # what might be thoughts without an opening tag
        self._starts_unopened = bool(UNOPENED.search(llm_name))
        self._closing = "</think>" if self._starts_unopened else ""  # empty outside thoughts
        self._is_line_start = True
        self._is_fenced = False
        self._has_text = False

    def add(self, piece: str) -> str:
        """Return what of the answer can be shown after this piece."""
        self._held += piece
        shown = []
        while (text := self._step()) is not None:
            shown.append(text)
        return "".join(shown)

    def expect_no_thoughts(self) -> str:
        """Return what was withheld, as the server turns out to send thoughts apart from the text."""
        if not self._starts_unopened:
            return ""
        self._starts_unopened, self._closing = False, ""
        self._held, self._withheld = self._withheld + self._held, ""
        return self.add("")

    def finish(self) -> str:
        """Return the rest of the answer, now that no more comes."""
        if self._closing and not self._starts_unopened:
            return ""
        rest = self._withheld + self._held
        self._held = self._withheld = ""
        return rest if self._has_text else rest.lstrip()

    def _step(self) -> str | None:
        """Use up a part of what is held and return what of it is shown; None when more has to come first."""
        if self._closing:
            return self._skip_thoughts()
        if not self._has_text:
            self._held = self._held.lstrip()
        if not self._held:
            return None
        return self._judge_line_start() if self._is_line_start else self._pass_line()

    def _skip_thoughts(self) -> str | None:
        _, closing, rest = self._held.partition(self._closing)
        if not closing:
            undecided = len(self._closing) - 1
            if self._starts_unopened:
                self._withheld += self._held[:-undecided]
            self._held = self._held[-undecided:]
            return None
        self._held, self._closing, self._withheld = rest, "", ""
        self._is_line_start, self._starts_unopened = True, False
        return ""

    def _judge_line_start(self) -> str | None:
        line = self._held.lstrip(" \t")
        if any(mark != line and mark.startswith(line) for mark in (*OPENINGS, *FENCES)):
            return None
        opening = next((tag for tag in OPENINGS if line.startswith(tag)), None)
        if opening and not self._is_fenced:
            self._held, self._closing = line.removeprefix(opening), f"</{opening[1:]}"
            return ""
        if line.startswith(FENCES):
            self._is_fenced = not self._is_fenced
        return self._pass_line()

    def _pass_line(self) -> str:
        line, newline, self._held = self._held.partition("\n")
        self._is_line_start, self._has_text = bool(newline), True
        return line + newline


def without_thoughts(text: str) -> str:
    """Return a whole answer without its thoughts, also where their opening tag is missing."""
    seen = ThoughtFilter()
    answer = seen.add(text) + seen.finish()
    position, is_fenced = 0, False
    for line in answer.splitlines(keepends=True):
        if line.lstrip().startswith(FENCES):
            is_fenced = not is_fenced
        elif not is_fenced and (closing := LONE_CLOSING.match(line)):
            return without_thoughts(answer[position + closing.end() :])
        position += len(line)
    return answer
