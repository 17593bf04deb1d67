"""An owner's edit against its page: it survives, is asked about when the page changes, and ends when both agree."""

from collections import Counter
from random import Random

import pytest

from models_app import index, snippets
from models_app.models import SnippetVersion, TrainingSnippet
from models_app.retrieval import retrieve
from models_app.rewriting import MOST_VERSIONS
from models_app.sections import LEAST_LIKENESS, Section, likeness
from models_app.snippets import ConflictMoved, Replaced, replace_page_snippets
from tests.models_app.test_snippets import CHAIR, LAMP, SHELF, URL, Draft, found

Conflict = TrainingSnippet.Conflict
DEARER = Draft("Lamp", "The lamp costs 45 euros.")
DEAREST = Draft("Lamp", "The lamp costs 50 euros.")
MINE = Draft("Lamp", "Sold out.")


@pytest.fixture
def edited(support):
    """The page's first snippet, edited by Ann."""
    replace_page_snippets(support, URL, [LAMP, CHAIR])
    return snippets.edit(support.snippets.get(prompt="Lamp"), MINE.prompt, MINE.completion, URL, "ann@acme.test")


@pytest.fixture
def asked(support, edited):
    """The edited snippet, whose page says something else now."""
    replace_page_snippets(support, URL, [DEARER, CHAIR])
    edited.refresh_from_db()
    return edited


@pytest.fixture
def gone(support, edited):
    """The edited snippet, whose section is not on its page any more."""
    replace_page_snippets(support, URL, [CHAIR])
    edited.refresh_from_db()
    return edited


@pytest.fixture(autouse=True)
def index_in_step(support):
    yield
    assert index.check_model(support.pk) == []


def own(row) -> tuple:
    row.refresh_from_db()
    return row.prompt, row.completion


def source(row) -> tuple:
    return row.source_prompt, row.source_completion


def texts(draft) -> tuple:
    return draft.prompt, draft.completion


def versions(row) -> list[tuple]:
    return list(row.versions.values_list("completion", "cause", "author"))


class TestEditing:
    def test_the_first_edit_keeps_what_the_page_said(self, edited):
        assert (own(edited), source(edited), edited.is_edited) == (texts(MINE), texts(LAMP), True)
        assert versions(edited) == [(LAMP.completion, "edited", "ann@acme.test")]

    def test_a_second_edit_keeps_the_first_source(self, edited):
        snippets.edit(edited, "Lamp", "Sold out for good.", URL, "bo@acme.test")
        assert source(edited) == texts(LAMP)
        assert versions(edited)[0] == (MINE.completion, "edited", "bo@acme.test")

    def test_an_edit_back_to_the_source_ends_the_edit(self, support, edited):
        snippets.edit(edited, LAMP.prompt, LAMP.completion, URL)
        assert (edited.is_edited, source(edited)) == (False, ("", ""))
        assert replace_page_snippets(support, URL, [LAMP, CHAIR]) == Replaced(kept=2)

    def test_saving_without_a_change_writes_no_version(self, edited):
        snippets.edit(edited, MINE.prompt, MINE.completion, URL + "#lamp")
        assert (edited.uri, len(versions(edited))) == (URL + "#lamp", 1)

    def test_what_is_written_by_hand_has_versions_and_no_source(self, support):
        row = snippets.add(support, "Hours", "From nine.")
        snippets.edit(row, "Hours", "From ten.", "")
        assert (row.is_edited, source(row), versions(row)) == (False, ("", ""), [("From nine.", "edited", "")])

    def test_an_earlier_text_is_restored_as_an_edit(self, edited):
        snippets.restore(edited.versions.get(), "ann@acme.test")
        assert (own(edited), edited.is_edited) == (texts(LAMP), False)
        assert versions(edited)[0] == (MINE.completion, "restored", "ann@acme.test")

    def test_only_the_newest_versions_are_kept(self, support):
        row = snippets.add(support, "Count", "0")
        for number in range(1, MOST_VERSIONS + 5):
            snippets.edit(row, "Count", str(number), "")
        kept = row.versions.values_list("completion", flat=True)
        assert len(kept) == MOST_VERSIONS
        assert kept[0] == str(MOST_VERSIONS + 3)


class TestThePageChanges:
    def test_while_its_section_stays_the_edit_stays_and_nothing_is_asked(self, support, edited):
        assert replace_page_snippets(support, URL, [CHAIR, LAMP]) == Replaced(kept=2)
        assert (own(edited), edited.conflict, edited.position) == (texts(MINE), Conflict.NONE, 1)

    def test_a_changed_section_is_asked_about_and_the_owners_text_answers(self, support, asked):
        assert (asked.conflict, asked.new_prompt, asked.new_completion) == (Conflict.CHANGED, *texts(DEARER))
        assert (own(asked), source(asked)) == (texts(MINE), texts(LAMP))
        assert [row.prompt for row in support.snippets.all()] == ["Lamp", "Chair"]
        assert retrieve(support, "lamp", mode="keyword").hits[0].text.endswith("Sold out.")
        assert found(support, "45") == []

    def test_the_same_change_again_asks_nothing_anew(self, support, asked):
        before = TrainingSnippet.objects.filter(pk=asked.pk).values().get()
        assert replace_page_snippets(support, URL, [DEARER, CHAIR]) == Replaced(kept=2)
        assert TrainingSnippet.objects.filter(pk=asked.pk).values().get() == before

    def test_a_further_change_shows_the_newest_against_the_first_source(self, support, asked):
        assert replace_page_snippets(support, URL, [DEAREST, CHAIR]) == Replaced(kept=2, conflicts=1)
        assert own(asked) == texts(MINE)
        assert (asked.new_completion, source(asked)) == (DEAREST.completion, texts(LAMP))

    def test_it_ends_by_itself_when_the_page_goes_back(self, support, asked):
        assert replace_page_snippets(support, URL, [LAMP, CHAIR]) == Replaced(kept=2)
        assert (own(asked), asked.conflict, asked.new_completion) == (texts(MINE), Conflict.NONE, "")
        assert (asked.is_edited, source(asked)) == (True, texts(LAMP))

    @pytest.mark.parametrize("state", ["edited", "asked", "gone"])
    def test_the_edit_ends_when_the_page_says_what_the_owner_wrote(self, support, request, state):
        row = request.getfixturevalue(state)
        assert replace_page_snippets(support, URL, [MINE, CHAIR]).conflicts == 0
        assert (own(row), row.is_edited, row.conflict, source(row)) == (texts(MINE), False, "", ("", ""))
        assert replace_page_snippets(support, URL, [MINE, CHAIR]) == Replaced(kept=2)
        assert replace_page_snippets(support, URL, [LAMP, CHAIR]) == Replaced(changed=1, kept=1)

    def test_a_section_that_is_gone_is_asked_about(self, support, gone):
        assert (own(gone), gone.conflict) == (texts(MINE), Conflict.GONE)
        assert replace_page_snippets(support, URL, [CHAIR]) == Replaced(kept=1, protected=1)

    def test_a_page_that_is_gone_leaves_the_edited_one_and_asks(self, support, edited):
        assert snippets.retire_pages(support, [URL]) == 1
        assert (own(edited), edited.conflict) == (texts(MINE), Conflict.GONE)

    def test_a_section_that_comes_back_ends_the_question(self, support, gone):
        assert replace_page_snippets(support, URL, [LAMP, CHAIR]) == Replaced(kept=2)
        assert (own(gone), gone.conflict, gone.is_edited) == (texts(MINE), Conflict.NONE, True)

    def test_a_section_that_comes_back_otherwise_is_asked_about_as_changed(self, support, gone):
        assert replace_page_snippets(support, URL, [DEARER, CHAIR]) == Replaced(kept=2, conflicts=1)
        assert (own(gone), gone.conflict) == (texts(MINE), Conflict.CHANGED)

    def test_an_edited_title_hides_the_section_from_nobody(self, support):
        replace_page_snippets(support, URL, [LAMP, CHAIR])
        row = snippets.edit(support.snippets.get(prompt="Lamp"), "What is the lamp?", "A light.", URL)
        replace_page_snippets(support, URL, [DEARER, CHAIR])
        assert (own(row), row.conflict) == (("What is the lamp?", "A light."), Conflict.CHANGED)
        assert support.snippets.count() == 2


class TestDeciding:
    def test_mine_stays_and_is_compared_with_the_new_source_from_now_on(self, support, asked):
        snippets.resolve(asked, "mine", author="ann@acme.test")
        assert (own(asked), source(asked), asked.conflict) == (texts(MINE), texts(DEARER), Conflict.NONE)
        assert (asked.is_edited, asked.new_completion) == (True, "")
        assert versions(asked)[0] == (MINE.completion, "resolved", "ann@acme.test")
        assert replace_page_snippets(support, URL, [DEARER, CHAIR]) == Replaced(kept=2)
        assert replace_page_snippets(support, URL, [DEAREST, CHAIR]).conflicts == 1

    def test_theirs_is_taken_and_the_edit_is_over(self, support, asked):
        snippets.resolve(asked, "theirs")
        assert (own(asked), asked.is_edited, source(asked)) == (texts(DEARER), False, ("", ""))
        assert versions(asked)[0] == (MINE.completion, "resolved", "")
        assert found(support, "45") == ["Lamp"]
        assert replace_page_snippets(support, URL, [DEARER, CHAIR]) == Replaced(kept=2)

    def test_a_merged_text_is_the_owners_and_the_new_text_its_source(self, support, asked):
        snippets.resolve(asked, "merged", "Lamp", "Sold out, was 45 euros.")
        assert (own(asked), source(asked)) == (("Lamp", "Sold out, was 45 euros."), texts(DEARER))
        assert (asked.is_edited, asked.conflict) == (True, Conflict.NONE)
        assert found(support, "45") == ["Lamp"]

    def test_a_merged_text_that_is_the_pages_ends_the_edit(self, asked):
        snippets.resolve(asked, "merged", *texts(DEARER))
        assert (own(asked), asked.is_edited) == (texts(DEARER), False)

    def test_an_ordinary_edit_leaves_the_question_open(self, asked):
        snippets.edit(asked, "Lamp", "Sold out until May.", URL)
        assert (asked.conflict, source(asked), asked.is_edited) == (Conflict.CHANGED, texts(LAMP), True)

    def test_an_edit_to_what_the_page_says_now_answers_the_question(self, asked):
        snippets.edit(asked, *texts(DEARER), URL)
        assert (asked.conflict, asked.is_edited, source(asked)) == (Conflict.NONE, False, ("", ""))

    def test_a_gone_section_becomes_the_owners_own(self, support, gone):
        snippets.resolve(gone, "mine")
        assert (own(gone), gone.source, gone.is_edited, gone.conflict) == (texts(MINE), "manual", False, "")
        assert replace_page_snippets(support, URL, [CHAIR, LAMP]) == Replaced(added=1, kept=1)

    def test_a_gone_section_is_deleted_where_the_owner_says_so(self, support, gone):
        snippets.resolve(gone, "theirs")
        assert [row.prompt for row in support.snippets.all()] == ["Chair"]
        assert not SnippetVersion.objects.filter(snippet=gone.pk).exists()

    def test_nobody_decides_about_a_text_they_have_not_seen(self, support, asked):
        replace_page_snippets(support, URL, [DEAREST, CHAIR])
        with pytest.raises(ConflictMoved):
            snippets.resolve(asked, "theirs")
        assert own(asked) == texts(MINE)

    def test_what_is_decided_is_not_decided_again(self, asked):
        seen = TrainingSnippet.objects.get(pk=asked.pk)
        snippets.resolve(asked, "mine")
        with pytest.raises(ConflictMoved):
            snippets.resolve(seen, "theirs")
        with pytest.raises(ValueError, match="nothing"):
            snippets.resolve(seen, "nothing")


class TestRecognising:
    def test_a_changed_text_under_the_same_title_keeps_its_row_and_history(self, support):
        replace_page_snippets(support, URL, [LAMP, CHAIR])
        row = support.snippets.get(prompt="Lamp")
        assert replace_page_snippets(support, URL, [DEARER, CHAIR]) == Replaced(changed=1, kept=1)
        assert (own(row), row.embedded_in) == (texts(DEARER), "")
        assert versions(row) == [(LAMP.completion, "imported", "")]
        assert (found(support, "45"), found(support, "40")) == (["Lamp"], [])

    def test_a_changed_title_is_seen_through_by_the_text(self, support):
        asked = Draft("How do I return a lamp?", "Send it back within 30 days in its box. " * 2)
        replace_page_snippets(support, URL, [asked, CHAIR])
        before = set(support.snippets.values_list("pk", flat=True))
        again = Draft("Returning a lamp", asked.completion.replace("30", "14"))
        assert replace_page_snippets(support, URL, [CHAIR, again]) == Replaced(changed=1, kept=1)
        assert set(support.snippets.values_list("pk", flat=True)) == before

    def test_another_subject_is_another_row(self, support):
        replace_page_snippets(support, URL, [LAMP])
        assert likeness(LAMP, SHELF) < LEAST_LIKENESS
        assert replace_page_snippets(support, URL, [SHELF]) == Replaced(added=1, removed=1)

    def test_half_of_the_pairs_of_words_is_alike(self):
        words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
        before = Draft("A", " ".join(words))
        assert likeness(before, Draft("B", " ".join([*words[:7], "ten"]))) >= LEAST_LIKENESS
        assert likeness(before, Draft("A", " ".join([*words[:4], *"vwxyz"]))) < LEAST_LIKENESS
        assert likeness(Draft("", ""), Draft("", "")) == 1

    def test_among_equal_titles_the_most_alike_is_taken(self, support):
        parts = [Draft("Prices", f"The {thing} costs {ord(thing)} euros a piece.") for thing in "abc"]
        replace_page_snippets(support, URL, parts)
        middle = support.snippets.get(completion=parts[1].completion)
        changed = Draft("Prices", "The b costs 5 euros a piece.")
        assert replace_page_snippets(support, URL, [changed, parts[2]]) == Replaced(changed=1, kept=1, removed=1)
        assert own(middle) == texts(changed)

    def test_texts_without_number_are_replaced_in_order_and_in_time(self, support):
        many = [Draft(f"Row {number}", f"Value {number}") for number in range(150)]
        replace_page_snippets(support, URL, many)
        others = [Draft(f"Line {number}", f"Figure {number}") for number in range(150)]
        assert replace_page_snippets(support, URL, others) == Replaced(added=150, removed=150)
        same_title = [Draft("", f"Other {number}") for number in range(150)]
        assert replace_page_snippets(support, URL, same_title) == Replaced(added=150, removed=150)


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_each_section_has_one_row_and_no_words_of_the_owner_are_lost(support, seed):
    chance = Random(seed)
    words = [f"w{number}" for number in range(6)]

    def draft() -> Draft:
        return Draft(chance.choice(["", "Lamp", "Chair", "Shelf"]), " ".join(chance.choices(words, k=4)))

    page = [draft() for _ in range(4)]
    for _ in range(25):
        page = [draft() if chance.random() < 0.3 else section for section in page if chance.random() < 0.9]
        page += [draft() for _ in range(chance.randrange(2))]
        chance.shuffle(page)
        before = {row.pk: texts(row) for row in support.snippets.filter(is_edited=True)}
        replaced = replace_page_snippets(support, URL, page)
        standing = list(support.snippets.filter(uri=URL))
        assert {row.pk: texts(row) for row in standing if row.pk in before} == before
        said = Counter(saying(row) for row in standing if row.conflict != Conflict.GONE)
        assert said == Counter(map(texts, page))
        assert replaced.standing == len(standing)
        assert all(row.is_edited for row in standing if row.conflict)
        assert replace_page_snippets(support, URL, page) == Replaced(kept=len(page), protected=replaced.protected), (
            "a second time nothing changes"
        )
        for row in chance.sample(standing, min(2, len(standing))):
            row.refresh_from_db()
            if row.conflict:
                snippets.resolve(row, chance.choice(list(snippets.Choice)), *texts(draft()))
            else:
                snippets.edit(row, *texts(draft()), URL)
        support.snippets.filter(source="manual").update(uri="elsewhere")


def saying(row) -> tuple:
    """What the page says where this row stands."""
    if row.conflict == Conflict.CHANGED:
        return row.new_prompt, row.new_completion
    return source(row) if row.is_edited else texts(row)


def with_options(text: Draft) -> Draft:
    """The text as an import makes it that inserts the source's address and keeps images."""
    return Draft(text.prompt, f"![Lamp (new)](https://acme.test/lamp_(2).png)\n\n{text.completion}\n\nSource: {URL}")


class TestTheOwnersSwitchesChange:
    """“Insert source URL” and “Import images” change the text of every section, and none of what it says."""

    def test_an_edit_is_not_asked_about_and_takes_the_new_source(self, support, edited):
        assert replace_page_snippets(support, URL, [with_options(LAMP), with_options(CHAIR)]).conflicts == 0
        assert (own(edited), edited.is_edited, edited.conflict) == (texts(MINE), True, "")
        assert source(edited) == texts(with_options(LAMP))
        assert with_options(CHAIR).completion in support.snippets.values_list("completion", flat=True)
        assert replace_page_snippets(support, URL, [LAMP, CHAIR]).conflicts == 0
        assert (own(edited), source(edited), edited.conflict) == (texts(MINE), texts(LAMP), "")

    def test_an_open_question_stays_as_it_is_with_the_texts_of_now(self, support, asked):
        assert replace_page_snippets(support, URL, [with_options(DEARER), CHAIR]).conflicts == 0
        asked.refresh_from_db()
        assert (asked.conflict, asked.new_completion) == (Conflict.CHANGED, with_options(DEARER).completion)
        assert replace_page_snippets(support, URL, [with_options(LAMP), CHAIR]).conflicts == 0
        assert (own(asked), asked.conflict) == (texts(MINE), "")

    @pytest.mark.parametrize(
        ("with_images", "without"),
        [
            (r'Text ![A \[b\] lamp](https://x.test/a(1).jpg "T \"q\"") more.', "Text more."),
            ("[![Linked](l.jpg)](/l) and [![M](m.jpg) Em](/m) [![](n.jpg)](/n)", "[Linked](/l) and [Em](/m)"),
            ("## ![Head](h.png)\n\nText", "## Head\n\nText"),
            ("Text", "Text\n\nSource: price list.pdf"),
        ],
    )
    def test_images_are_left_out_as_in_a_page_that_is_read_without(self, with_images, without):
        assert Section("T", with_images).is_but_for_options(Draft("T", without))
        assert not Section("T", f"{with_images} 5").is_but_for_options(Draft("T", without))
        assert not Section("U", with_images).is_but_for_options(Draft("T", without))

    def test_a_changed_text_is_asked_about_with_other_options_too(self, support, edited):
        assert replace_page_snippets(support, URL, [with_options(DEARER), CHAIR]).conflicts == 1

    def test_an_edit_that_says_what_the_page_says_is_still_an_edit(self, support, edited):
        snippets.edit(edited, "Lamp", f"{LAMP.completion} ", URL)
        replace_page_snippets(support, URL, [with_options(LAMP), CHAIR])
        edited.refresh_from_db()
        assert (edited.is_edited, edited.conflict) == (True, "")
