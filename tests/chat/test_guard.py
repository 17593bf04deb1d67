"""Which facts of an answer the guard finds in the sources, however they are written, and which it flags."""

import pytest

from chat.facts.reading import facts_in
from chat.guard import unsupported


def flagged(answer: str, *sources: str) -> list[str]:
    return [flag.text for flag in unsupported(answer, sources)]


SAME = [
    ("1,000.50", "1.000,50"),
    ("1,000.50", "1 000,50"),
    ("1'000.50", "1000.5"),
    ("5 %", "5 percent"),
    ("5 pour cent", "5%"),
    ("EUR 5", "5 €"),
    ("five euros", "5,00 Euro"),
    ("€1.5 million", "1,500,000 EUR"),
    ("2026-12-07", "7 December 2026"),
    ("7. Dezember 2026", "December 7th, 2026"),
    ("7 décembre 2026", "7 de diciembre de 2026"),
    ("12/07/2026", "7 December 2026"),
    ("12/07/2026", "12 July 2026"),
    ("07.12.2026", "7.12.26"),
    ("7 December 2026", "7 December"),
    ("7–9 May 2026", "9 May 2026"),
    ("2026年12月7日", "2026-12-07"),
    ("9:00", "9 am"),
    ("18.30 Uhr", "6:30 p.m."),
    ("18 h", "6 pm"),
    ("+49 30 123 4567", "(030) 123 4567"),
    ("+49 (0)30 1234567", "0049 30 1234567"),
    ("+1 555 123 4567", "(555) 123-4567"),
    ("https://www.ex.test/a/", "http://ex.test/a"),
    ("[here](https://ex.test/a_(b))", "ex.test/a_(b)"),
    ("https://ex.test/a/b", "https://ex.test"),
    ("Ann (at) ex.test", "ann@ex.test"),
    ("four and a half hours", "4.5 hours"),
    ("thirty days", "a 30-day trial"),
    ("vierundzwanzig Stunden", "24h"),
    ("a week", "1 week"),
    ("Python3", "Python 3"),
    ("٣٠", "30"),
    ("3.11.2", "3.11"),
    ("| Price in EUR |\n| 59 |", "59 €"),
    ("3 days", "at least 3"),
]


@pytest.mark.parametrize(("source", "answer"), SAME)
def test_a_fact_that_is_written_otherwise_is_found(source, answer):
    assert facts_in(answer, is_source=False)
    assert flagged(f"It is {answer}.", f"It is {source}.") == []


OTHERS = [
    ("5 €", "5 dollars"),
    ("5 €", "6 €"),
    ("5 % of 20 €", "20 %"),
    ("3 euros within 14 days", "3 days"),
    ("7 December 2026", "8 December 2026"),
    ("7 December 2026", "7 December 2027"),
    ("15/07/2026", "7 May 2026"),
    ("9 am", "9 pm"),
    ("+49 30 123 4567", "+44 30 123 4567"),
    ("(030) 123 4567", "(030) 123 4568"),
    ("ann@ex.test", "bob@ex.test"),
    ("https://ex.test/a", "https://ex.test/b"),
    ("order HB-2041", "HB-2043"),
    ("error E-09, rest 17 minutes", "E-17"),
    ("1,190", "1,191"),
    ("3.11.2", "3.12"),
]


@pytest.mark.parametrize(("source", "answer"), OTHERS)
def test_a_fact_that_the_source_does_not_hold_is_flagged(source, answer):
    assert len(flagged(f"It is {answer}.", f"It is {source}.")) == 1


def test_the_answers_own_numbering_is_no_fact():
    answer = "1. Open it.\n2. Close it [3].\n\nStep 4: wait.\n\n### 5. Done\n\n6️⃣ Leave."
    assert flagged(answer, "Open, close, wait, leave.") == []


def test_words_that_merely_count_are_no_facts():
    assert flagged("There are two ways, and one of them is best. You may go.", "Ways.") == []


def test_a_computed_total_is_flagged():
    assert flagged("Both cost 60 € together: 20 € and 40 €.", "The lamp costs 20 €, the shade 40 €.") == ["60 €"]


def test_each_fact_is_flagged_once_with_its_kind():
    flags = unsupported("Call 030 123 4567 or 030 123 4567, or see ex.test/a for 7 €.", ["Hello."])
    assert [(flag.kind, flag.text) for flag in flags] == [
        ("url", "ex.test/a"),
        ("phone", "030 123 4567"),
        ("price", "7 €"),
    ]


def test_any_text_can_be_read():
    for text in (
        "",
        "\x00\x01",
        "12" * 50_000,
        "1.2." * 20_000,
        "é7日½٣" * 1_000,
        "+" * 9_000,
        "(0)" * 9_000,
        "\\" * 99,
    ):
        facts_in(text, is_source=True)
        facts_in(text, is_source=False)
