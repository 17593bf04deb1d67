"""What of two texts is marked as different."""

import re
import time

from models_app.word_diff import mark_changes, mark_sides

TAGS = re.compile(r'<span class="visually-hidden">[^<]*</span>|</?(ins|del)>')


def bare(marked: str) -> str:
    """The marked text without its marks."""
    return TAGS.sub("", marked)


def test_words_that_differ_are_marked_on_their_side_and_nothing_is_lost():
    before, after = "  A lamp costs\n40 euros.", "A lamp costs 45 euros,\n\nthe big one 50."
    old, new = mark_sides(before, after)
    assert (bare(old), bare(new)) == (before, after)
    assert re.findall(r"</span>([^<]+)<span", old) == ["40 euros."]
    assert re.findall(r"</span>([^<]+)<span", new) == ["45 euros,\n\nthe big one 50."]


def test_blanks_alone_are_no_difference():
    assert mark_changes("  indented", "indented") == ""
    assert mark_changes("one two\nthree", "one  two three\n") == ""
    assert mark_changes("", "") == ""


def test_markup_is_shown_and_not_run():
    old, new = mark_sides("<b>x</b>", "<script>y</script>")
    assert "<b>" not in old and "<script>" not in new
    assert "<script>" not in mark_changes("<i>", "<script>")


def test_far_from_a_change_words_are_left_out():
    far = "word " * 100
    shown = mark_changes(f"{far}40 {far}", f"{far}45 {far}")
    assert shown.count("word") < 50 and shown.count("…") == 2
    assert bare(shown).strip("… ").startswith("word")


def test_long_and_repeating_texts_are_compared_in_time():
    lines = [f"Line {number} says that it is one of many." for number in range(20_000)]
    changed = [*lines[:100], "Another line.", *lines[101:-1], "The end."]
    started = time.monotonic()
    old, new = mark_sides("\n".join(lines), "\n".join(changed))
    assert bare(old) == "\n".join(lines) and bare(new) == "\n".join(changed)
    mark_sides("x the y " * 30_000, "z the w " * 30_000)
    assert time.monotonic() - started < 20
