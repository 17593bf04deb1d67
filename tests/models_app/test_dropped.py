"""What the owner deleted stays away from the next imports of its page or file, until that says something else."""

from dataclasses import dataclass

import pytest

from models_app import snippets
from models_app.dropped import dropped_count, forget_dropped, has_dropped, without_dropped
from models_app.models import DroppedSection, TrainingSnippet

URL = "https://acme.test/prices"


@dataclass(frozen=True)
class Draft:
    prompt: str
    completion: str


LAMP = Draft("Lamp", "The lamp costs 40 euros.")
CHAIR = Draft("Chair", "The chair costs 90 euros.")
CHEAPER = Draft("Chair", "The chair costs 70 euros.")


def imported(model, *drafts: Draft, **options) -> snippets.Replaced:
    return snippets.replace_page_snippets(model, URL, drafts, **options)


def drop(model, draft: Draft) -> None:
    snippets.delete(model, [model.snippets.filter(prompt=draft.prompt).first().pk])


def stored(model) -> list[Draft]:
    return [Draft(row.prompt, row.completion) for row in model.snippets.all()]


@pytest.mark.parametrize("source", ["crawl", "site", "upload"])
def test_a_section_that_was_deleted_stays_away_and_counts_nowhere(support, source):
    imported(support, LAMP, CHAIR, source=source)
    drop(support, CHAIR)
    assert imported(support, LAMP, CHAIR, source=source) == snippets.Replaced(kept=1)
    assert stored(support) == [LAMP]


def test_it_comes_back_when_the_page_says_something_else_there(support):
    imported(support, LAMP, CHAIR)
    drop(support, CHAIR)
    assert imported(support, LAMP, CHEAPER).added == 1
    assert stored(support) == [LAMP, CHEAPER]


def test_another_page_with_the_same_words_keeps_them(support):
    imported(support, CHAIR)
    drop(support, CHAIR)
    other = "https://acme.test/other"
    assert snippets.replace_page_snippets(support, other, [CHAIR]).added == 1


def test_the_source_line_and_the_images_switched_on_bring_nothing_back(support):
    imported(support, LAMP, CHAIR)
    drop(support, CHAIR)
    cited = Draft(CHAIR.prompt, f"![A chair](/chair.png)\n\n{CHAIR.completion}\n\nSource: {URL}")
    assert imported(support, LAMP, cited).added == 0


def test_of_two_equal_sections_the_one_that_was_not_deleted_stands(support):
    imported(support, CHAIR, CHAIR)
    kept = support.snippets.last()
    drop(support, CHAIR)
    for _ in range(2):
        imported(support, CHAIR, CHAIR)
        assert list(support.snippets.all()) == [kept]


def test_an_edited_snippet_is_dropped_as_its_page_says_it(support):
    imported(support, LAMP, CHAIR)
    chair = support.snippets.get(prompt="Chair")
    snippets.edit(chair, "Chair", "Ask for the chair.", URL)
    imported(support, LAMP, CHEAPER)
    snippets.delete(support, [chair.pk])
    imported(support, LAMP, CHEAPER)
    assert stored(support) == [LAMP]
    assert dropped_count(support, URL) == 1


def test_what_was_written_by_hand_is_not_remembered(support):
    snippets.delete(support, [snippets.add(support, "Chair", CHAIR.completion, URL).pk])
    assert not has_dropped(support, URL)


def test_what_an_import_removes_is_not_remembered(support):
    imported(support, LAMP, CHAIR)
    imported(support, LAMP)
    snippets.retire_pages(support, [URL])
    assert not DroppedSection.objects.exists()
    assert imported(support, LAMP, CHAIR).added == 2


def test_deleting_the_same_text_twice_is_remembered_once(support):
    for _ in range(2):
        snippets.delete(support, [snippets.add(support, "Chair", CHAIR.completion, URL, "crawl").pk])
    assert dropped_count(support, URL) == 1


def test_what_is_forgotten_comes_back(support):
    imported(support, LAMP, CHAIR)
    drop(support, CHAIR)
    assert forget_dropped(support, URL) == 1
    assert imported(support, LAMP, CHAIR).added == 1


def test_a_page_of_which_nothing_was_dropped_keeps_its_drafts(support):
    assert without_dropped(support, URL, [LAMP, CHAIR]) == [LAMP, CHAIR]


def test_it_goes_with_its_model(support):
    imported(support, CHAIR)
    drop(support, CHAIR)
    snippets.delete_model(support)
    assert not DroppedSection.objects.exists()
    assert not TrainingSnippet.objects.exists()
