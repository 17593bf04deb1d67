"""A page of very many changed sections: in short parts it ends as in one step, also when it is stopped in between."""

from itertools import pairwise

import pytest

from models_app import index, snippets
from models_app.models import MLModel
from models_app.page_parts import PART, replace_in_parts
from models_app.snippets import Replaced, SnippetQuotaReached, prepare_sections, replace_page_snippets
from tests.models_app.test_snippets import URL, Draft

COUNT = 2 * PART + 50


def draft(number: int, word: str) -> Draft:
    return Draft(f"Section {number}", f"{word.title()} {number} is what {word} section says of {word}.")


BEFORE = [draft(number, "before") for number in range(COUNT)]
# Some say the same, most say something else, some are new under another title, and as many are gone.
AFTER = [
    *BEFORE[:20],
    *(draft(number, "after") for number in range(20, COUNT - 30)),
    *(draft(number, "new") for number in range(1_000, 1_300)),
]


def filled(model: MLModel) -> MLModel:
    replace_page_snippets(model, URL, prepare_sections(model, URL, BEFORE))
    for number in (10, 30, COUNT - 1):  # of a section that stays, of one that changes, of one that goes
        snippets.edit(model.snippets.get(prompt=f"Section {number}"), f"Mine {number}", "Mine.", URL)
    return model


@pytest.fixture
def page(support) -> MLModel:
    return filled(support)


def state(model: MLModel) -> list[dict]:
    fields = ("prompt", "completion", "source_hash", "is_edited", "conflict", "new_completion", "source_completion")
    return list(model.snippets.order_by("position", "prompt").values("position", *fields))


def in_parts(model: MLModel, within=lambda: None) -> Replaced:
    sections = prepare_sections(model, URL, AFTER)
    early = replace_in_parts(model, URL, sections, within=within)
    return replace_page_snippets(model, URL, sections).after(early)


def test_it_ends_as_in_one_step(page):
    other = filled(MLModel.objects.create(slug="other", name="Other"))
    rows = {row.prompt: row.pk for row in page.snippets.all()}
    sizes = []

    def within():
        sizes.append(page.snippets.filter(completion__contains=" section says of after").count())

    assert in_parts(page, within) == replace_page_snippets(other, URL, prepare_sections(other, URL, AFTER))
    assert state(page) == state(other)
    assert len(sizes) > 1 and max(after - before for before, after in pairwise([0, *sizes])) <= PART
    assert page.snippets.get(prompt="Section 25").pk == rows["Section 25"]
    assert index.check_model(page.pk) == []


@pytest.mark.parametrize("stopped_at", [1, 2])
def test_stopped_between_parts_the_next_run_ends_at_the_same(page, stopped_at):
    other = filled(MLModel.objects.create(slug="other", name="Other"))
    calls = []

    def within():
        calls.append(None)
        if len(calls) == stopped_at:
            raise InterruptedError

    before = state(page)
    with pytest.raises(InterruptedError):
        in_parts(page, within)
    assert (state(page) == before) == (stopped_at == 1), "a part that is stopped is undone"
    in_parts(page)
    replace_page_snippets(other, URL, prepare_sections(other, URL, AFTER))
    assert state(page) == state(other)
    assert index.check_model(page.pk) == []


def test_what_was_edited_between_parts_survives(page):
    edits = []

    def within():
        if not edits:
            row = page.snippets.get(prompt=f"Section {COUNT - 40}")
            edits.append(snippets.edit(row, row.prompt, "Mine, in between.", URL))

    assert in_parts(page, within).conflicts == 3
    edits[0].refresh_from_db()
    assert (edits[0].completion, edits[0].conflict) == ("Mine, in between.", "changed")


def test_of_a_page_of_few_changes_all_is_left_to_the_last_step(page):
    sections = [*BEFORE[: COUNT - PART], *(draft(number, "after") for number in range(COUNT - PART, COUNT))]
    calls = []
    assert replace_in_parts(page, URL, sections, within=lambda: calls.append(None)) == Replaced()
    assert calls == []


def test_a_full_workspace_refuses_all_of_the_page(page, acme):
    acme.snippet_quota = COUNT + 100
    acme.save()
    before = state(page)
    with pytest.raises(SnippetQuotaReached):
        in_parts(page)
    assert state(page) == before
