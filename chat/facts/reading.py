"""Reads all facts of a text, the ones that are easily told first: URLs, e-mails, dates, times, phones, numbers."""

import re
import unicodedata
from collections.abc import Iterator

from chat.facts.dates import date_facts, time_facts
from chat.facts.fact import Fact, Unread, keys
from chat.facts.numbers import number_facts, word_facts

_REST = r"[^\s<>\"“”|\\^{}\x01]"
URL = re.compile(rf"[hHwW](?:ttps?://|TTPS?://|ww\.|WW\.){_REST}+")
DOMAIN_END = re.compile(
    r"\.(?:com|org|net|edu|gov|info|io|dev|app|eu|de|at|ch|fr|es|it|nl|be|pt|pl|uk|se|dk|no|fi|ie|ca|au|us|jp|cn|br|"
    rf"biz|shop|example|test)(?![\w@-]|\.\w)(?:/{_REST}*)?"
)
DOMAIN_START = re.compile(r"(?<![\w@./-])(?:[\w-]+\.)*[\w-]+$")
MAIL_SIGN = re.compile(r"@| ?[(\[](?:at|@)[)\]] ?")
MAILBOX = re.compile(r"[\w.+-]{1,64}$")
MAIL_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)+")
LONGEST_HOST = 100
PHONE = re.compile(
    r"[0-9+(](?<![\w.,:/-].)(?<!\d [0-9(])(?:"
    r"(?P<international>(?:(?<=\+)|(?<=0)0(?=[1-9]))[ (]{0,2}\d(?:[ ()/.-]{0,2}\d){6,16})"
    r"|(?P<national>(?:(?<=0)|(?<=\()0)(?:[ ()/.-]{0,2}\d){5,13}"
    r"|(?:(?<=1)[ .-]\(?\d{3}|(?<=\()\d{3}|(?<=\d)\d\d)\)?[ .-]{1,2}\d{3}[ .-]\d{4}"
    r"|(?<=\d)\d\d[ .-]\d{5,7})"
    r")(?![\w%€]|[.,]\d)"
)
LEAST_PHONE_DIGITS = 6
LIST_NUMBER = re.compile(r"^[ >#]*(?:[-+] )?\d{1,3}[.)](?=\s)", re.MULTILINE)
OWN_NUMBER = re.compile(
    r"\[\d{1,2}\](?!\()|\b(?:step|schritt|étape|paso|passo|stap|option|punkt)\W{0,2}\d{1,2}\b", re.I
)
KEYCAP = re.compile("\\d\ufe0f?\u20e3")
ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")

PLAIN = {
    **dict.fromkeys("*`\u200b\u2060\ufeff\xad", ""),
    **dict.fromkeys("\t\r\xa0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **dict.fromkeys("\u2018\u2019\u02bc", "'"),
}


class _PlainCharacters(dict):
    """For str.translate: code point -> how the readers of facts know it."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if (plain := PLAIN.get(character)) is None:
            is_digit = unicodedata.category(character) == "Nd"
            plain = str(unicodedata.digit(character)) if is_digit else character
        self[code] = plain
        return plain


_plain = _PlainCharacters()


def facts_in(text: str, *, is_source: bool) -> list[Fact]:
    """Return the facts of a text; of an answer neither the numbers of its own lists nor words that merely count."""
    unread = Unread(_normalised(text))
    return list(_facts_in(unread, is_source))


def _facts_in(unread: Unread, is_source: bool) -> Iterator[Fact]:
    yield from _addresses(unread)
    yield from date_facts(unread)
    yield from time_facts(unread)
    unread.text = LIST_NUMBER.sub(_blank, unread.text)
    if not is_source:
        unread.text = OWN_NUMBER.sub(_blank, unread.text)
    yield from _phones(unread)
    yield from number_facts(unread)
    yield from word_facts(unread, is_source)


def _normalised(text: str) -> str:
    text = KEYCAP.sub("", text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    text = text.translate(_plain)
    return ESCAPED.sub(r"\1", text) if "\\" in text else text


def _blank(match: re.Match) -> str:
    return " " * len(match[0])


def _addresses(unread: Unread) -> Iterator[Fact]:
    for match in unread.take(URL):
        yield _url_of(_trimmed(match[0]), unread, match.start())
    for match in unread.take(MAIL_SIGN):
        box = MAILBOX.search(unread.text, max(0, match.start() - LONGEST_HOST), match.start())
        host = MAIL_HOST.match(unread.text, match.end())
        if box and host:
            unread.blot(box.start(), host.end())
            address = f"{box[0]}@{host[0]}".lower()
            gives = keys(f"mail {address}", f"host {host[0].lower()}")
            yield Fact("e-mail", address, gives, (keys(f"mail {address}"),))
    for match in unread.take(DOMAIN_END):
        if start := DOMAIN_START.search(unread.text, max(0, match.start() - LONGEST_HOST), match.start()):
            yield _url_of(_trimmed(start[0] + match[0]), unread, start.start())


def _trimmed(url: str) -> str:
    """Return the URL without what belongs to the sentence or the Markdown around it."""
    url = re.split(r"\]\(|[\]>]", url)[0].rstrip(".,;:!?'_")
    while url.endswith(")") and url.count(")") > url.count("("):
        url = url[:-1].rstrip(".,;:!?'_")
    return url


def _url_of(url: str, unread: Unread, start: int) -> Fact:
    unread.blot(start, start + len(url))
    place = re.sub(r"^(?:https?://)?(?:www\.)?", "", url.lower()).partition("#")[0].rstrip("/")
    host = re.split("[/?:]", place)[0]
    needs = [keys(f"url {place}")]
    if place == host:
        needs.append(keys(f"host {host}"))
    return Fact("url", url, keys(f"url {place}", f"host {host}"), tuple(needs))


def _phones(unread: Unread) -> Iterator[Fact]:
    for match in unread.take(PHONE):
        written = match[0].replace("(0)", "")
        digits = re.sub(r"\D", "", written)
        if len(digits) < LEAST_PHONE_DIGITS or (match["national"] and digits.startswith("0") and _is_decimal(match[0])):
            continue
        text = unread.blot(*match.span())
        if match["international"]:
            number = digits.removeprefix("00")
            ends = [number[length:] for length in (1, 2, 3)]
            yield Fact("phone", text, keys(f"abroad {number}", *(f"end {end}" for end in ends)),
                       (keys(f"abroad {number}"), *(keys(f"home {end}") for end in ends)))  # fmt: skip
        else:
            number = digits.lstrip("0") if digits.startswith("0") else digits[-10:]
            yield Fact("phone", text, keys(f"home {number}"), (keys(f"home {number}"), keys(f"end {number}")))


def _is_decimal(written: str) -> bool:
    return bool(re.fullmatch(r"0[.,]\d+", written))
