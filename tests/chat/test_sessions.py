"""A session's memory, with a clock that is moved by hand."""

from datetime import UTC, datetime, timedelta

import pytest

from chat.models import Session
from chat.sessions import Exchange, Memory, Said, recall, remember
from models_app.models import MLModel
from tenants.store import activated

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


def exchange(number: int) -> Exchange:
    return Exchange(f"Question {number}?", f"Answer {number}.")


def questions(model, key="k", now=NOON) -> list[str]:
    return [kept.question for kept in recall(model, key, now).exchanges]


def test_a_session_remembers_questions_with_their_answers(support):
    assert recall(support, "k", NOON) == Memory()
    remember(support, "k", Said(exchange(1)), NOON)
    remember(support, "k", Said(exchange(2)), NOON)
    assert recall(support, "k", NOON).exchanges == (exchange(1), exchange(2))
    assert Session.objects.count() == 1


def test_a_session_expires_after_its_timeout_without_a_question(support):
    remember(support, "k", Said(exchange(1)), NOON)
    just = NOON + timedelta(seconds=1_200)
    assert questions(support, now=just) == ["Question 1?"]
    assert questions(support, now=just + timedelta(seconds=1)) == []
    remember(support, "k", Said(exchange(2)), just)
    assert questions(support, now=just + timedelta(seconds=1_200)) == ["Question 1?", "Question 2?"]


def test_what_had_expired_does_not_come_back_with_the_next_question(support):
    remember(support, "k", Said(exchange(1)), NOON)
    Session.objects.update(questionnaire_answers=[["Your name?", "Ann"]])
    later = NOON + timedelta(seconds=1_201)
    remember(support, "k", Said(exchange(2)), later)
    assert recall(support, "k", later) == Memory((exchange(2),), (), is_ours=True)


@pytest.mark.parametrize(
    ("max_items", "kept"), [(0, []), (1, []), (4, [8, 9]), (5, [8, 9]), (15, [3, 4, 5, 6, 7, 8, 9])]
)
def test_no_more_is_kept_than_max_session_items_in_whole_exchanges(support, max_items, kept):
    support.max_session_items = max_items
    for number in range(10):
        remember(support, "k", Said(exchange(number)), NOON)
    assert questions(support) == [f"Question {number}?" for number in kept]


def test_one_key_is_another_session_in_another_model_or_tenant(support, globex):
    remember(support, "k", Said(exchange(1)), NOON)
    other = MLModel.objects.create(slug="sales", name="Sales")
    assert questions(other) == []
    with activated(globex):
        theirs = MLModel.objects.create(slug="support", name="Support")
        assert questions(theirs) == []


def test_questionnaire_answers_are_recalled_until_they_expire(support):
    Session.objects.create(model=support, key="k", questionnaire_answers=[["Your name?", "Ann"]], last_used_at=NOON)
    assert recall(support, "k", NOON).questionnaire_answers == (Exchange("Your name?", "Ann"),)
    assert recall(support, "k", NOON + timedelta(seconds=1_201)) == Memory()
