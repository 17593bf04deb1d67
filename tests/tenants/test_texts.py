"""Texts that neither a database nor UTF-8 would take."""

import json

import pytest

from tenants.texts import json_line, printable, storable

HALVES = ["\ud800", "a\udcffb", "\udfff\ud800"]


@pytest.mark.parametrize("text", [*HALVES, "a\x00b"])
def test_a_storable_text_holds_neither_halves_of_surrogate_pairs_nor_nul(text):
    assert "\x00" not in storable(text).encode().decode()


@pytest.mark.parametrize("text", ["", "Ärger ☃ 𝄞", 'back\\slash "quoted"\n'])
def test_any_other_text_stays_as_it_is(text):
    assert storable(text) == printable(text) == text


@pytest.mark.parametrize("text", [*HALVES, "Ärger ☃ 𝄞 \x00"])
def test_a_line_of_json_can_be_printed_and_is_read_back_to_the_letter(text):
    line = json_line({"id": text, text: [text]})
    assert json.loads(line.encode().decode()) == {"id": text, text: [text]}


def test_what_cannot_be_printed_is_shown_by_its_number():
    assert printable("a\udcffb").encode() == rb"a\udcffb"
