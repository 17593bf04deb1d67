"""What making vectors takes: tokens, money and time, before and while they are made."""

from decimal import Decimal

import pytest

from models_app import index, snippets
from models_app.embedder import space_of
from models_app.tasks import make_vectors, start_vectorising
from models_app.vector_work import VectorWork
from tests.fakes.openai_server import OpenAIServer
from tests.models_app.test_switching import Killed, dies_after, teach


@pytest.fixture
def model(support):
    with OpenAIServer() as server:
        support.embedding_model, support.provider_base_url = "tiny", server.url
        support.save()
        yield support


def test_what_is_to_come_is_counted_and_priced(model):
    teach(model, 10)
    tokens = sum(model.snippets.values_list("token_count", flat=True))
    work = VectorWork.of(model)
    assert (work.missing, work.tokens, work.cost_to_come, work.seconds_left) == (10, tokens, None, None)
    model.embedding_price = Decimal("0.02")
    assert VectorWork.of(model).cost_to_come == tokens * Decimal("0.02") / 1_000_000


def test_what_is_made_here_costs_nothing(support):
    support.embedding_price = Decimal(5)
    snippets.add(support, "Hours", "Nine to five.")
    assert VectorWork.of(support).cost_to_come is None
    assert VectorWork.of(support).wanted.is_local


def test_the_time_left_is_told_by_the_pace_of_the_last_run_in_the_same_space(model):
    teach(model, 10)
    space = space_of(model).name
    model.vectorisings.create(state="done", space=space, made_count=100, worked_seconds=20)
    model.vectorisings.create(state="failed", space=space, made_count=2, worked_seconds=60)
    model.vectorisings.create(state="done", space="elsewhere", made_count=100, worked_seconds=1)
    assert VectorWork.of(model).seconds_left == pytest.approx(2)


def test_a_first_run_switches_nothing(model):
    teach(model, 40)
    assert not VectorWork.of(model).is_switching
    index.put_vectors(model.pk, space_of(model).name, [model.snippets.first().pk], [[1.0]])
    assert not VectorWork.of(model).is_switching


def test_a_job_that_is_taken_up_again_goes_on_counting(model):
    model.embedding_price = Decimal(1)
    model.save()
    teach(model, 100)
    job = start_vectorising(model)
    with job.leased() as lease:
        lease.check = dies_after(2)
        with pytest.raises(Killed):
            make_vectors(job, lease)
        job.refresh_from_db()
        assert (job.made_count, job.done_count, job.space) == (64, 64, space_of(model).name)
        assert VectorWork.of(model).seconds_left > 0
        first = job.token_count
        lease.check = lambda: None
        assert make_vectors(job, lease) == "36 vectors made."
    job.refresh_from_db()
    assert (job.made_count, job.token_count > first > 0, job.worked_seconds > 0) == (100, True, True)
    assert VectorWork.of(model).cost_so_far == Decimal(job.token_count) / 1_000_000
