"""Why a snippet is not in the context: the one cause, with its numbers, whatever keeps it out."""

import pytest

from chat.context import get_context
from chat.why_not import Verdict, why_not
from models_app import snippets
from models_app.explain import Cause
from models_app.models import Retrieval
from tests.chat.causes import ASKED, FAR_QUESTION, QUESTION


def verdict(model, question, snippet, mode) -> Verdict:
    return why_not(model, question, snippet)[Retrieval.values.index(mode)]


@pytest.mark.parametrize("cause", list(Cause))
def test_each_cause_is_told_as_the_one_that_keeps_a_snippet_out(support, causes, cause):
    mode, question = ASKED[cause]
    told = verdict(support, question, causes[cause], mode)
    assert not told.is_used
    assert told.cut.cause == cause, told.words
    assert all(cut.cause != cause for _, cut in told.other_cuts)
    context = get_context(support, question, mode=mode)
    assert causes[cause].pk not in {packed.hit.id for packed in context.packed if packed.is_used}


def test_a_snippet_in_the_context_has_no_cause_and_tells_its_place(support, causes):
    right = snippets.add(support, "Pump repair cost", "The repair of a pump costs forty euros.")
    told = verdict(support, QUESTION, right, "keyword")
    assert told.is_used
    assert told.cut is None
    assert told.words == f"It ranks 1st and is in the context with {told.packed.tokens} tokens."


def test_a_snippet_that_is_cut_to_fit_says_so(support, far_server):
    right = snippets.add(support, "Pump", "The pump is repaired at once, whatever it is. " * 60)
    support.max_context_tokens = 100
    told = verdict(support, QUESTION, right, "keyword")
    assert told.is_used
    assert "is in the context, cut to" in told.words


def test_the_budget_is_told_with_what_was_left_of_it(support, causes):
    told = verdict(support, QUESTION, causes[Cause.BUDGET], "semantic")
    has, left = told.packed.tokens, told.packed.tokens_left
    assert told.words == f"It ranks 2nd and has {has:,} tokens; {left:,} of 200 were left."
    assert has > left


def test_few_words_that_stand_alone_are_told_with_their_share(support, causes):
    told = verdict(support, FAR_QUESTION, causes[Cause.TOO_FEW_WORDS], "hybrid")
    share = told.explanation.keyword.matched_share
    assert 0 < share < 0.6
    assert f"it has {100 * share:.0f} % of their weight, 60 % are needed" in told.words
    assert [cut.cause for _, cut in told.other_cuts] == [Cause.THRESHOLD]


def test_the_threshold_that_is_named_lets_the_snippet_through(support, causes):
    right = causes[Cause.TOO_FEW_WORDS]
    support.threshold = verdict(support, FAR_QUESTION, right, "hybrid").finding.passing_threshold
    assert verdict(support, FAR_QUESTION, right, "hybrid").is_used
    support.threshold = round(support.threshold + 0.01, 2)
    assert verdict(support, FAR_QUESTION, right, "hybrid").cut.cause == Cause.TOO_FEW_WORDS


def test_no_threshold_is_named_for_what_would_rank_too_deep_without_one(support, causes):
    finding = verdict(support, QUESTION, causes[Cause.THRESHOLD], "semantic").finding
    assert finding.cut.cause == Cause.THRESHOLD
    assert finding.passing_threshold is None


def test_a_follow_up_is_explained_for_what_was_searched(support, causes):
    told = why_not(support, "And its cost?", causes[Cause.DEPTH], ["How is a pump repaired?"])
    assert {each.explanation.question for each in told} == {"And its cost?\nHow is a pump repaired?"}
