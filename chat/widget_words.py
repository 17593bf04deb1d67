"""The widget's few words in twenty languages."""

import json
from functools import cache
from pathlib import Path

WORDS = Path(__file__).with_name("browser") / "words.json"
FALLBACK = "en"


def words_in(language: str) -> dict[str, str]:
    """Return the words by their names, in English for a language that is not there."""
    words = _all_words()
    return words.get(language, words[FALLBACK])


def languages() -> list[str]:
    """Return the codes of the languages that the widget speaks."""
    return sorted(_all_words())


@cache
def _all_words() -> dict[str, dict[str, str]]:
    table = json.loads(WORDS.read_text(encoding="utf-8"))
    names = table.pop("names")
    return {language: dict(zip(names, words, strict=True)) for language, words in table.items()}
