"""Turns a text into its index terms, the same for snippets and questions.

A word gives two terms: its root, which it shares with its other forms, and its exact spelling. Identifiers, names with
symbols and numbers keep their whole form beside their parts; scripts written without blanks give pairs of characters;
a long word gives what it may end with: German writes a card for the insured as one word, and people ask for the card.
"""

import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from itertools import chain, islice, pairwise

import snowballstemmer

from models_app.stop_words import carrying_words


def _snowball() -> str:
    """Return which stemmers are at work: snowballstemmer takes PyStemmer where it is installed."""
    try:
        return f"PyStemmer {version('PyStemmer')}"
    except PackageNotFoundError:
        return f"snowballstemmer {version('snowballstemmer')}"


# Whoever changes what index_terms returns raises the number in front: an index made otherwise is then rebuilt.
TERMS_VERSION = f"2, {_snowball()}, Unicode {unicodedata.unidata_version}"
MAX_QUESTION_TERMS = 64
MAX_QUESTION_LENGTH = 20_000  # characters
MAX_QUESTION_CHUNKS = 10_000  # one character, such as ﷺ, may be written out as four words

EXACT_MARK = "="  # in front of a word's exact spelling; the index gives such terms less weight
ENDING_MARK = "=-"  # in front of what a long word ends with, or may: these get the least weight, and lengthen no text
TERM_SYMBOLS = "=+#.&-"  # what a term may hold beside letters, marks and numbers
MAX_TERM_LENGTH = 64
MAX_CHUNK_LENGTH = 256  # longer runs (base64, minified code) are cut: nobody asks for them whole
MAX_WHOLE_PARTS = 12

# English stems cut to six letters find German forms and compounds better than German stems do, without knowing the
# language (bench_retrieval, nDCG@10 on xquad de: .957; German stems .945, uncut English ones .931), and cost English
# nothing.
ROOT_LENGTH = 6
# First and last code point of an alphabet, the Snowball algorithm for its words, the length of a root.
ALPHABETS = (
    (0x0000, 0x024F, "english", ROOT_LENGTH),
    (0x0370, 0x03FF, "greek", ROOT_LENGTH),
    (0x0400, 0x052F, "russian", ROOT_LENGTH),
    (0x0530, 0x058F, "armenian", ROOT_LENGTH),
    (0x0600, 0x06FF, "arabic", None),
    (0x0900, 0x097F, "hindi", None),
    (0x0B80, 0x0BFF, "tamil", None),
)

# A Latin word of so many letters may be a compound, with as many as this in its last part, and the rest before it. The
# endings cost a fifth of the keyword leg's size (German: a third) and no set anything (bench_retrieval, nDCG@10: xquad
# de .959, without .958). From four letters on, "load" would find downloads: awsdocs .777, and .785 without.
LONG_WORD, ENDING_LENGTH = 9, 5
# A part begins as a syllable does: with a vowel behind a consonant, or with consonants that begin words. That leaves
# half of the endings, and most of the nonsense, out of the index.
PART_START = re.compile(
    "(?:(?<![aeiouy])|[bcfgkp]l|[bcdfgkptvw]r|[cpst]h|[gk]n|p[fs]|qu|s[cklmnpt]|s[pt]r|spl|sch[lmnrw]?|[tz]w|[^aeiouy])"
    "[aeiouy]"
)
VOWEL = re.compile("[aeiouy]")
INFLECTION = re.compile("(?<=....)(?:e[mnrs]?|n|s)$")

# Thai to Myanmar, Khmer, Han and kana, Hangul: written without blanks, or with endings glued to the word.
UNSPACED_RUN = re.compile(
    "([\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+)"
)
# Accents on Latin, Greek and Cyrillic letters (the breve of й makes another letter), points of Hebrew and Arabic.
# The marks of other scripts are vowels.
ACCENT = re.compile(
    "(?<!и)\u0306|[\u0300-\u0305\u0307-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]"
)
LETTERS_THAT_KEEP_A_STROKE = str.maketrans(
    {"ø": "o", "đ": "d", "ð": "d", "ł": "l", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)

PARTICLES = frozenset({"down", "in", "off", "on", "out", "over", "up"})
ARABIC_AND = re.compile(r"^و(?=\w{5})|^ف(?=ال\w{3})")

LINK_TARGET = re.compile(r"\]\(<?[^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+\"[^\"\n]*\")?\)")
MARKDOWN_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
TRADE_MARK = re.compile("[\u2120\u2122]")
INVISIBLE = re.compile("[\u0640\ufe00-\ufe0f\U000e0100-\U000e01ef]")  # mere length, and how a character is drawn
BLANK_IN_NUMBER = re.compile("(?<=\\d)[\u00a0\u2009\u202f](?=\\d{3}(?!\\d))")
APOSTROPHES, HYPHENS, CONNECTORS = "'\u2018\u2019\u02bc", "-\u2010\u2011", "._,@&+#"

NAME_WITH_SYMBOL = re.compile(r"([^\W_]*[^\W\d_])(\+\+|\#|\+(?!\w))")
NAME_WITH_DOT = re.compile(r"\.[^\W\d_]")
POSSESSIVE = re.compile(r"'[sS]$")
PART_BORDER = re.compile(r"[-_@&+#]|(?<!\d)[.,']|[.,'](?!\d)")
NOT_IN_WHOLE = re.compile(r"[-_.,'@+#]")
CAMEL_HUMP = re.compile(r"[a-z][A-Z]")
CAMEL_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
DIGIT = re.compile(r"\d")
DIGITS_OR_OTHERS = re.compile(r"\d+|\D{2,}")
PUNCTUATED_NUMBER = re.compile(r"(\D*)(\d+(?:[.,']\d+)+)(\D*)")
NUMBER_PUNCTUATION = re.compile(r"[.,']")
GROUPED_NUMBERS = tuple(
    re.compile(rf"(\d{{1,3}}(?:{separator}\d{{2,3}})*{separator}\d{{3}})(?:{point}(\d+))?")
    for separator, point in ((",", r"\."), (r"\.", ","), ("'", r"\."))
)


def index_terms(text: str) -> list[str]:
    """Return the terms of a snippet's title or Markdown text, each as often as it occurs."""
    return list(chain.from_iterable(map(_indexed_terms_of, _chunks(text))))


def question_terms(text: str) -> list[str]:
    """Return the distinct terms of a question, at most 64, without its stop words unless it has nothing else.

    Roots come first, then exact spellings and endings, so that a long question keeps as many words as it can.
    """
    read = islice(_chunks(text[:MAX_QUESTION_LENGTH]), MAX_QUESTION_CHUNKS)
    chunks = [chunk for chunk in read if _terms_of(chunk)]
    words = [_plain_word(chunk) for chunk in chunks]
    carrying = [chunk for chunk, carries in zip(chunks, carrying_words(words), strict=True) if carries]
    terms = [term for chunk in carrying for term in _question_terms_of(chunk)]
    endings = [term for chunk in carrying for term in _asked_ending(chunk)]
    terms.sort(key=lambda term: term.startswith(EXACT_MARK))
    terms += _joined_pairs(words) + endings
    return list(dict.fromkeys(terms))[:MAX_QUESTION_TERMS]


def _chunks(text: str) -> Iterable[str]:
    """Return what stands between blanks and separators, runs of unspaced scripts apart from the rest."""
    text = MARKDOWN_ESCAPE.sub(r"\1", LINK_TARGET.sub("]", text))
    if not text.isascii():
        text = unicodedata.normalize("NFKC", BLANK_IN_NUMBER.sub("", TRADE_MARK.sub(" ", text)))
    shown = text.translate(_characters)
    runs = shown.split()
    # Of most texts the runs are the chunks: to look at each took as long as all else.
    is_plain = shown.isascii() and len(max(runs, key=len, default="")) <= MAX_CHUNK_LENGTH
    return runs if is_plain else _parted(runs)


def _parted(runs: Iterable[str]) -> Iterator[str]:
    for run in runs:
        for chunk in (run,) if run.isascii() else filter(None, UNSPACED_RUN.split(run)):
            for start in range(0, len(chunk), MAX_CHUNK_LENGTH):
                yield chunk[start : start + MAX_CHUNK_LENGTH]


class _Characters(dict):
    """For str.translate: keeps letters, marks, numbers and what may connect them; all else becomes a blank."""

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        category = unicodedata.category(character)
        if category == "Cf" or INVISIBLE.match(character):
            kept = None
        elif category == "Nd":
            kept = str(unicodedata.digit(character))
        elif character in APOSTROPHES:
            kept = "'"
        elif character in HYPHENS:
            kept = "-"
        else:
            kept = character if category[0] in "LMN" or character in CONNECTORS else " "
        self[code] = kept
        return kept


_characters = _Characters()


@lru_cache(maxsize=32_768)  # a site's words: nearly all of what a text says was said before
def _indexed_terms_of(chunk: str) -> tuple[str, ...]:
    return (*_terms_of(chunk), *_endings(chunk))


def _terms_of(chunk: str) -> tuple[str, ...]:
    if UNSPACED_RUN.match(chunk):
        return (*_pairs(chunk), *chunk) if len(chunk) > 1 else (chunk,)
    return _spaced_terms(chunk)


def _question_terms_of(chunk: str) -> tuple[str, ...]:
    """As _terms_of, but pairs of characters without the single ones, and "iphone15" also as "iphone" and "15"."""
    if UNSPACED_RUN.match(chunk):
        return tuple(_pairs(chunk)) or (chunk,)
    word = _plain_word(chunk)
    pieces = DIGITS_OR_OTHERS.findall(word) if word.isalnum() and DIGIT.search(word) else ()
    return (*_spaced_terms(chunk), *(term for piece in pieces for term in _word_terms(piece)))


def _pairs(run: str) -> list[str]:
    return [run[start : start + 2] for start in range(len(run) - 1)]


def _joined_pairs(words: list[str]) -> list[str]:
    """Return what pairs such as "log in" and "iphone 15" are if written as one.

    Not of all pairs: what is written as one is so rare that it would outweigh both of its words.
    """
    return [
        _word_terms(one + two)[-1]
        for one, two in pairwise(words)
        if one.isalpha() and len(one) > 1 and (two in PARTICLES or two.isdigit()) and not UNSPACED_RUN.search(one)
    ]


def _spaced_terms(chunk: str) -> tuple[str, ...]:
    """Return the terms of a chunk such as `words`, `C++`, `.NET`, `write_json`, `2.10.3` or `ann@acme.test`."""
    word = chunk.rstrip(".,")
    # Most chunks are a plain word, perhaps at the end of a clause: for these the rest comes to the same.
    if word.isascii() and word.isalpha() and len(word) < MAX_TERM_LENGTH and not CAMEL_HUMP.search(word):
        return _word_terms(word.lower())
    terms = []
    position = 0
    for name in NAME_WITH_SYMBOL.finditer(chunk):
        terms += _compound_terms(chunk[position : name.start()])
        terms.append(_fold(name[0]))
        if len(name[1]) > 1:
            terms += _part_terms(name[1])
        position = name.end()
    terms += _compound_terms(chunk[position:])
    return tuple(term[:MAX_TERM_LENGTH] for term in terms)


def _compound_terms(text: str) -> list[str]:
    """Return the terms of each part, and the whole when there are several: e-mail, email and E_Mail share it."""
    parts = [part for part in PART_BORDER.split(text) if any(map(str.isalnum, part))]
    joined = _fold(NOT_IN_WHOLE.sub("", text))
    whole = [f".{joined}"] if NAME_WITH_DOT.match(text) else []
    if 1 < len(parts) <= MAX_WHOLE_PARTS:
        if all(part.isdigit() for part in parts):
            whole += ["-".join(parts)]
        else:
            whole += _word_terms(joined)[-1:]
        if "'" in text:
            parts = [part for part in parts if len(part) > 1]  # l'eau, don't, O'Brien
    return whole + [term for part in parts for term in _part_terms(part)]


def _part_terms(part: str) -> list[str]:
    if NUMBER_PUNCTUATION.search(part):
        return _number_terms(part)
    humps = CAMEL_PART.findall(part) if CAMEL_HUMP.search(part) and part.isascii() and part.isalpha() else []
    if min(map(len, humps), default=0) < 2 or (len(humps) == 2 and part[0].isupper()):
        humps = []  # iPhone, and names such as GitHub or JavaScript: Java is another thing
    return [term for word in (part, *humps) for term in _word_terms(_fold(word))]


def _number_terms(part: str) -> list[str]:
    """Return the terms of `1,000`, `v2.10.3` or `10.5GB`: the number, what is attached to it, and both."""
    number = PUNCTUATED_NUMBER.fullmatch(part)
    if not number:  # 1.5x2
        return [term for piece in NUMBER_PUNCTUATION.split(part) for term in _word_terms(_fold(piece))]
    before, digits, after = number.groups()
    readings = _readings(digits)
    attached = [_fold(before + readings[0] + after)] if before or after else []
    words = [word for word in (before, after) if len(word) > 1]
    return attached + readings + [term for word in words for term in _word_terms(_fold(word))]


def _word_terms(word: str) -> tuple[str, ...]:
    """Return the root and the exact spelling of a folded word; one term for what holds a digit."""
    if DIGIT.search(word):
        return (word,)
    return (_root(word), EXACT_MARK + word)


def _endings(chunk: str) -> list[str]:
    """Return with which parts a long word may end."""
    word = _latin_word(chunk, LONG_WORD)
    return [
        ENDING_MARK + _uninflected(word[start:])
        for start in range(LONG_WORD - ENDING_LENGTH, len(word) - ENDING_LENGTH + 1)
        if PART_START.match(word, start) and VOWEL.search(word, 0, start)
    ]


def _asked_ending(chunk: str) -> list[str]:
    """Return the ending that longer words share with this one."""
    word = _latin_word(chunk, ENDING_LENGTH)
    return [ENDING_MARK + _uninflected(word)] if word else []


def _latin_word(chunk: str, least: int) -> str:
    """Return the chunk as a folded word if it is a plain one of enough Latin letters, or nothing.

    Not of an identifier: pages that list hundreds would be found by what they all end with (awsdocs .725, else .785).
    """
    if len(chunk) < least or CAMEL_HUMP.search(chunk):
        return ""
    word = _plain_word(chunk)
    return word if least <= len(word) <= MAX_TERM_LENGTH and word.isascii() and word.isalpha() else ""


def _uninflected(part: str) -> str:
    return INFLECTION.sub("", part)


def _readings(digits: str) -> list[str]:
    """Return the ways to read a number that holds points, commas or apostrophes."""
    for pattern in GROUPED_NUMBERS:
        if grouped := pattern.fullmatch(digits):
            whole, fraction = grouped.groups(default="")
            number = _decimal(NUMBER_PUNCTUATION.sub("", whole), fraction)
            return [number, digits] if "." in whole and not fraction else [number]  # 1.000 may be one, too
    numbers = NUMBER_PUNCTUATION.split(digits)
    if len(numbers) == 2:
        return [_decimal(*numbers)]
    return [digits, ".".join(numbers[:2])] if digits.count(".") == len(numbers) - 1 else numbers  # 2.10.3, or a list


def _decimal(whole: str, fraction: str) -> str:
    return f"{whole}.{fraction}" if fraction.strip("0") or len(fraction) == 1 else whole


def _plain_word(chunk: str) -> str:
    return _fold(POSSESSIVE.sub("", chunk.strip(CONNECTORS + "-'")))


def _fold(word: str) -> str:
    """Return the word without case and accents."""
    word = word.casefold()
    if word.isascii():
        return word
    bare = ACCENT.sub("", unicodedata.normalize("NFD", word)).translate(LETTERS_THAT_KEEP_A_STROKE)
    return unicodedata.normalize("NFC", bare)


@lru_cache(maxsize=16_384)  # a word stands in many chunks, with other marks at its ends each time
def _root(word: str) -> str:
    word = ARABIC_AND.sub("", word)
    for first, last, algorithm, length in ALPHABETS:
        if first <= ord(word[0]) <= last:
            with _stemming:
                return _stemmer(algorithm).stemWord(word)[:length] or word
    return word


_stemming = threading.Lock()  # a stemmer holds the word it works on


@cache
def _stemmer(algorithm: str):
    return snowballstemmer.stemmer(algorithm)
