"""Pause and resume of jobs, and long jobs that give way to waiting ones; on the rows of Vectorising."""

import time

import pytest

from models_app.jobs import Job, perform
from models_app.lease import JobPaused, Lease, TurnEnds, note_waiting_jobs
from models_app.models import Vectorising

# The lease is renewed by a thread of its own, which sees only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)

State = Job.State


@pytest.fixture
def job(support) -> Vectorising:
    return Vectorising.objects.create(model=support)


@pytest.fixture
def others_wait():
    """Let other jobs wait for a worker until the test ends."""
    note_waiting_jobs(1)
    yield
    note_waiting_jobs(0)


def again(job):
    return type(job).objects.get(pk=job.pk)


def works_until_told(job, lease):
    while True:
        lease.wait(0.01)


def test_a_running_job_is_paused_at_its_next_step_and_goes_on_when_resumed(acme, job):
    def work(job, lease):
        job.request_pause()
        return works_until_told(job, lease)

    perform(Vectorising, acme.pk, job.pk, work)
    paused = again(job)
    assert (paused.state, paused.is_open, paused.lease, paused.leased_until) == (State.PAUSED, True, "", None)
    assert perform(Vectorising, acme.pk, job.pk, work) is None
    paused.resume()
    assert again(job).state == State.QUEUED
    assert perform(Vectorising, acme.pk, job.pk, lambda job, lease: lease.check() or "Made.").state == State.DONE


def test_a_job_that_nobody_works_on_is_paused_at_once_and_is_not_abandoned(job):
    job.request_pause()
    assert again(job).state == State.PAUSED
    assert not Vectorising.abandoned().exists()
    assert Vectorising.take(job.pk) is None


def test_a_pause_that_is_taken_back_before_the_worker_saw_it_changes_nothing(acme, job):
    def work(job, lease):
        job.request_pause()
        job.resume()
        lease.wait(0.3)
        return "Made."

    assert perform(Vectorising, acme.pk, job.pk, work).state == State.DONE


@pytest.mark.parametrize(("press", "state"), [("resume", State.QUEUED), ("request_stop", State.STOPPED)])
def test_what_is_pressed_while_the_worker_is_about_to_pause_counts(acme, job, press, state):
    def work(job, lease):
        job.request_pause()
        with pytest.raises(JobPaused):
            works_until_told(job, lease)
        getattr(job, press)()
        raise JobPaused

    perform(Vectorising, acme.pk, job.pk, work)
    assert again(job).state == state


def test_a_paused_job_is_stopped_at_once(job):
    job.request_pause()
    job.request_stop()
    stopped = again(job)
    assert (stopped.state, stopped.message) == (State.STOPPED, "Stopped.")
    assert stopped.ended_at is not None


def test_only_open_jobs_are_paused_and_resumed(acme, job):
    perform(Vectorising, acme.pk, job.pk, lambda job, lease: "Made.")
    job.request_pause()
    job.resume()
    assert again(job).state == State.DONE


def test_a_long_job_gives_way_once_when_others_wait(job, others_wait):
    lease = Lease(Vectorising.take(job.pk), turn_seconds=0)
    with pytest.raises(TurnEnds):
        lease.check()
    lease.check()


def test_a_job_that_has_just_begun_does_not_give_way(acme, job, others_wait):
    assert perform(Vectorising, acme.pk, job.pk, lambda job, lease: lease.check() or "Made.").state == State.DONE


def test_a_job_that_gives_way_waits_for_a_worker_again(acme, job):
    def work(job, lease):
        raise TurnEnds

    perform(Vectorising, acme.pk, job.pk, work)
    assert (again(job).state, again(job).lease) == (State.QUEUED, "")
    assert perform(Vectorising, acme.pk, job.pk, lambda job, lease: "Made.").state == State.DONE


@pytest.mark.parametrize("ask", [Job.request_pause, Job.request_stop])
def test_a_step_that_outlasts_the_lease_stays_this_workers_after_a_pause_or_stop(acme, job, settings, ask):
    settings.SITEWISE_LEASE_SECONDS = 0.3

    def work(job, lease):
        ask(job)
        time.sleep(1)  # a slow page, or an LLM that thinks
        assert not Vectorising.abandoned().exists()
        lease.check()

    perform(Vectorising, acme.pk, job.pk, work)
    assert again(job).state in (State.PAUSED, State.STOPPED)
