"""Patterns by which an owner says which paths of a site are read, written as in robots.txt (RFC 9309, 2.2.3).

One a line: the beginning of a path, with "*" for any characters and "$" at its end for the end of the address.
"""

import re

from crawler.web.page_urls import normalise_pattern

EXCLUDED = "excluded by your patterns"
NOT_INCLUDED = "not among your patterns"
MAX_PATTERNS = 200
MAX_PATTERN_CHARACTERS = 2_000
SITE_OF_ADDRESS = re.compile(r"https?://[^/?#]*", re.I)


class PatternError(Exception):
    """A line, counted from 1, that is no pattern; the message is for people."""

    def __init__(self, line: int, message: str):
        self.line, self.message = line, message
        super().__init__(f"Line {line}: {message}")


class PathPatterns:
    """What an owner wants of a site: paths that match an include pattern, if there is any, and no exclude pattern."""

    def __init__(self, include: str = "", exclude: str = ""):
        self._include, self._exclude = parse_patterns(include), parse_patterns(exclude)

    def refusal(self, path: str) -> str | None:
        """Return why the path, with its query, is not wanted, or None if it is."""
        if any(_matches(pattern, path) for pattern in self._exclude):
            return EXCLUDED
        if self._include and not any(_matches(pattern, path) for pattern in self._include):
            return NOT_INCLUDED
        return None


def parse_patterns(text: str) -> tuple[str, ...]:
    """Return the patterns of the lines, encoded as addresses are. Errors: PatternError for the first bad line."""
    patterns: dict[str, None] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            patterns[_parse_line(number, line.strip())] = None
            if len(patterns) > MAX_PATTERNS:
                raise PatternError(number, f"There are more than {MAX_PATTERNS} patterns.")
    return tuple(patterns)


def _parse_line(number: int, line: str) -> str:
    """Return the pattern of a line; of a whole address its path is meant."""
    site = SITE_OF_ADDRESS.match(line)
    pattern = (line[site.end() :] or "/") if site else line
    if not pattern.startswith(("/", "*")):
        raise PatternError(number, f"“{line[:80]}” starts with neither “/” nor “*”, as in /blog/ or *.pdf$.")
    if "#" in pattern:
        raise PatternError(number, "What follows “#” in an address never reaches a site: it tells no pages apart.")
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise PatternError(number, f"The pattern is longer than {MAX_PATTERN_CHARACTERS:,} characters.")
    return normalise_pattern(pattern)


def _matches(pattern: str, path: str) -> bool:
    """Return whether the path matches: each piece between stars is looked for after the one before it."""
    is_end_fixed = pattern.endswith("$")
    first, *pieces = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    position = len(first)
    last = pieces.pop() if is_end_fixed and pieces else None
    for piece in pieces:
        position = path.find(piece, position)
        if position < 0:
            return False
        position += len(piece)
    if last is not None:
        return path.endswith(last) and len(path) - len(last) >= position
    return not is_end_fixed or position == len(path)
