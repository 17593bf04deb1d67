"""Jobs: one worker at a time, none lost with its worker, each ended in words; on the rows of Vectorising."""

import threading
from contextlib import ExitStack, contextmanager
from datetime import timedelta

import pytest
from django.db import IntegrityError, connections
from django.utils import timezone

from models_app import lease
from models_app.jobs import Job, JobFailed, perform, perform_taken, send_message
from models_app.lease import STANDING_SECONDS, JobLost, Lease, WorkerLeaves
from models_app.models import MLModel, TrainingSnippet, Vectorising
from tenants.installation import delete_tenant
from tenants.models import Tenant
from tenants.store import activated, active_store, on_tenant_commit, tenant_atomic
from tests.damage import damage_table, full_disk

# The lease is renewed by a thread of its own, which sees only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)

State = Job.State
# Between two steps what a job is told may be this old.
STEP_SECONDS = STANDING_SECONDS + 0.05


@pytest.fixture
def job(support) -> Vectorising:
    return Vectorising.objects.create(model=support)


def again(job):
    return type(job).objects.get(pk=job.pk)


def run_out(job) -> None:
    """Let the job's lease end in the past, as that of a killed worker does in time."""
    type(job).objects.filter(pk=job.pk).update(leased_until=timezone.now() - timedelta(seconds=1))


@contextmanager
def leaving_worker():
    lease.hand_back_jobs()
    try:
        yield
    finally:
        lease._is_worker_leaving.clear()


def in_a_thread(store, function, *arguments):
    """Return function(*arguments) as another worker's thread calls it, with its own connections."""
    outcome = []

    def call():
        with activated(store):
            outcome.append(function(*arguments))
        connections.close_all()

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    return outcome[0]


def test_a_queued_job_is_taken_once(job):
    taken = Vectorising.take(job.pk)
    assert (taken.state, taken.is_open, taken.is_interrupted) == (State.RUNNING, True, False)
    assert taken.lease and taken.started_at and taken.leased_until > timezone.now()
    assert Vectorising.take(job.pk) is None


def test_a_job_that_comes_upon_damage_of_the_store_ends_with_that_reason(acme, job):
    damage_table(active_store(), "models_app_trainingsnippet")
    perform(Vectorising, acme.pk, job.pk, lambda job, lease: str(list(TrainingSnippet.objects.all())))
    assert again(job).state == State.FAILED
    assert "its file is broken" in again(job).message and "unexpected" not in again(job).message


def test_a_job_for_which_the_disk_has_no_room_ends_with_that_reason(acme, job):
    def work(job, lease):
        with full_disk():
            return str(MLModel.objects.create(slug="other", name="Other"))

    perform(Vectorising, acme.pk, job.pk, work)
    assert again(job).state == State.FAILED
    assert "free some space" in again(job).message and "unexpected" not in again(job).message


def test_a_job_whose_end_cannot_be_written_down_goes_on_once_there_is_room(acme, job, caplog):
    with full_disk():
        assert perform(Vectorising, acme.pk, job.pk, lambda job, lease: "Done.") is None
    assert "waits" in caplog.text and "free some space" in caplog.text
    with ExitStack() as until_after:
        perform(Vectorising, acme.pk, job.pk, lambda job, lease: until_after.enter_context(full_disk()))
    assert again(job).state == State.RUNNING
    run_out(job)
    perform(Vectorising, acme.pk, job.pk, lambda job, lease: "Done.")
    assert again(job).state == State.DONE


def test_a_lease_that_cannot_be_renewed_for_a_full_disk_is_not_taken_for_lost(job):
    taken = Vectorising.take(job.pk)
    lease = Lease(taken)
    with full_disk():
        assert lease._try_to_renew() is None
    lease.check()


def test_a_job_is_left_waiting_that_nobody_took_in_half_a_minute(job):
    assert not again(job).is_left_waiting
    Vectorising.objects.filter(pk=job.pk).update(created_at=timezone.now() - timedelta(seconds=31))
    assert again(job).is_left_waiting
    taken = Vectorising.take(job.pk)
    assert not taken.is_left_waiting
    taken.hand_back()
    assert not again(job).is_left_waiting
    Vectorising.objects.filter(pk=job.pk).update(leased_until=timezone.now() - timedelta(seconds=31))
    assert again(job).is_left_waiting


def test_a_resumed_job_waits_from_then_on(job):
    Vectorising.objects.filter(pk=job.pk).update(created_at=timezone.now() - timedelta(hours=1))
    job.request_pause()
    job.resume()
    assert not again(job).is_left_waiting
    assert Vectorising.take(job.pk)


def test_of_workers_that_come_at_once_one_takes_the_job(acme_store, job):
    gate, takers = threading.Barrier(5), []

    def take():
        with activated(acme_store):
            gate.wait()
            takers.append(Vectorising.take(job.pk))
        connections.close_all()

    threads = [threading.Thread(target=take) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(takers) == 5
    assert sum(taker is not None for taker in takers) == 1


def test_the_job_of_a_killed_worker_is_taken_when_its_lease_has_run_out(job):
    first = Vectorising.take(job.pk)
    run_out(job)
    assert again(job).is_interrupted
    second = Vectorising.take(job.pk)
    assert second.lease != first.lease
    assert second.started_at == first.started_at


def test_an_ended_job_is_not_taken(job):
    Vectorising.take(job.pk).finish(State.DONE, "Done.")
    run_out(job)
    assert Vectorising.take(job.pk) is None
    assert not again(job).is_open


def test_a_job_ends_with_the_message_of_its_work(acme, job):
    ended = perform(Vectorising, acme.pk, job.pk, lambda job, lease: "All made.")
    assert (ended.state, ended.message) == (State.DONE, "All made.")
    stored = again(job)
    assert (stored.state, stored.message, stored.leased_until) == (State.DONE, "All made.", None)
    assert stored.seconds >= 0
    assert perform(Vectorising, acme.pk, job.pk, lambda job, lease: "Twice.") is None


def test_work_that_cannot_be_done_says_why(acme, job):
    def work(job, lease):
        raise JobFailed("The site is down.")

    perform(Vectorising, acme.pk, job.pk, work)
    assert (again(job).state, again(job).message) == (State.FAILED, "The site is down.")


def test_an_unexpected_error_ends_the_job_and_reaches_the_log(acme, job, caplog):
    perform(Vectorising, acme.pk, job.pk, lambda job, lease: 1 / 0)
    assert again(job).state == State.FAILED
    assert "ZeroDivisionError" in again(job).message
    assert "ZeroDivisionError" in caplog.text


def test_a_stop_ends_running_work_at_its_next_step(acme, job):
    def work(job, lease):
        lease.check()
        again(job).request_stop()
        lease.wait(STEP_SECONDS)
        return "Not reached."

    perform(Vectorising, acme.pk, job.pk, work)
    assert (again(job).state, again(job).message) == (State.STOPPED, "Stopped.")


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_a_stop_ends_a_job_nobody_works_on_at_once(job, is_interrupted):
    if is_interrupted:
        Vectorising.take(job.pk)
        run_out(job)
    job.request_stop()
    assert again(job).state == State.STOPPED
    assert Vectorising.take(job.pk) is None


def test_a_worker_that_was_only_held_up_finds_its_stopped_job_lost(job):
    with Vectorising.take(job.pk).leased() as lease:
        run_out(job)
        job.request_stop()
        with pytest.raises(JobLost):
            lease.check()


def test_a_stop_leaves_an_ended_job_as_it_is(job):
    Vectorising.take(job.pk).finish(State.DONE, "Done.")
    job.request_stop()
    assert (again(job).state, again(job).is_stop_requested) == (State.DONE, False)


def test_stop_from_the_keyboard_is_recorded_and_goes_on_up(job):
    def work(job, lease):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        perform_taken(Vectorising.take(job.pk), work)
    assert again(job).state == State.STOPPED


def test_a_worker_that_lost_its_job_writes_nothing_over_its_successor(job):
    def work(job, lease):
        run_out(job)
        Vectorising.take(job.pk)
        return "Late."

    taken = Vectorising.take(job.pk)
    perform_taken(taken, work)
    assert (again(job).state, again(job).message) == (State.RUNNING, "")
    assert again(job).lease != taken.lease


def test_check_raises_for_a_worker_that_lost_its_job(job):
    def work(job, lease):
        run_out(job)
        Vectorising.take(job.pk)
        with pytest.raises(JobLost):
            lease.check()
        return "Late."

    perform_taken(Vectorising.take(job.pk), work)


def test_a_leaving_worker_hands_its_job_back_for_the_next_to_take_at_once(job):
    def work(job, lease):
        with leaving_worker():
            lease.check()

    perform_taken(Vectorising.take(job.pk), work)
    assert (again(job).state, again(job).lease) == (State.QUEUED, "")
    assert not again(job).is_left_waiting
    assert Vectorising.take(job.pk) is not None


def test_a_wait_ends_early_when_the_worker_leaves(job):
    with Vectorising.take(job.pk).leased() as lease, leaving_worker(), pytest.raises(WorkerLeaves):
        lease.wait(3_600)


def test_deleting_the_model_stops_its_job(acme, support, job, caplog):
    def work(job, lease):
        MLModel.objects.all().delete()
        raise IntegrityError("what the work ran into, its rows being gone")

    ended = perform(Vectorising, acme.pk, job.pk, work)
    assert (ended.state, ended.message) == (State.STOPPED, "The model is gone.")
    assert "IntegrityError" not in caplog.text


def test_deleting_the_tenant_stops_its_job(acme, job):
    def delete() -> None:
        delete_tenant(Tenant.objects.get(pk=acme.pk))
        connections.close_all()

    def work(job, lease):
        web = threading.Thread(target=delete)
        web.start()
        web.join()
        lease.check()

    ended = perform(Vectorising, acme.pk, job.pk, work)
    assert (ended.state, ended.message) == (State.STOPPED, "The tenant is gone or suspended.")


def test_suspending_the_tenant_stops_its_job_and_starts_no_other(acme, job):
    def work(job, lease):
        Tenant.objects.filter(pk=acme.pk).update(is_suspended=True)
        lease.check()

    perform(Vectorising, acme.pk, job.pk, work)
    assert again(job).state == State.STOPPED
    other = Vectorising.objects.create(model=job.model)
    assert perform(Vectorising, acme.pk, other.pk, work) is None
    assert again(other).state == State.QUEUED


def test_a_job_of_an_unknown_tenant_or_row_is_nothing(acme, job):
    assert perform(Vectorising, 999_999, job.pk, lambda job, lease: "") is None
    assert perform(Vectorising, acme.pk, 999_999, lambda job, lease: "") is None


def test_the_lease_is_renewed_while_a_single_step_takes_longer_than_it(job, settings):
    settings.SITEWISE_LEASE_SECONDS = 0.3
    taken = Vectorising.take(job.pk)
    first = taken.leased_until
    with taken.leased():
        assert any(again(job).leased_until > first or threading.Event().wait(0.02) for _ in range(1_000))
        assert not Vectorising.abandoned().exists()


def test_the_thread_of_a_lease_ends_with_the_work(job):
    taken = Vectorising.take(job.pk)
    name = f"lease-{taken.lease}"
    with taken.leased():
        assert name in {thread.name for thread in threading.enumerate()}
    assert name not in {thread.name for thread in threading.enumerate()}


def test_an_ended_job_is_not_renewed(job):
    taken = Vectorising.take(job.pk)
    taken.finish(State.DONE, "Done.")
    Lease(taken)._renew()
    assert again(job).leased_until is None


class TestMessages:
    """A message is sent on commit only, and losing one harms nothing."""

    @pytest.fixture
    def sent(self, job, settings):
        """The messages that lie in the embedded broker."""
        folder = settings.BROKER_DIR / "messages"
        for message in folder.glob("*.msg"):
            message.unlink()
        return lambda: list(folder.glob("*.msg"))

    def test_the_message_leaves_when_the_row_is_committed(self, acme_store, job, sent):
        with tenant_atomic():
            job.wake_worker()
            assert sent() == []
        assert len(sent()) == 1
        assert in_a_thread(acme_store, again, job).pk == job.pk

    def test_no_message_leaves_for_a_row_that_is_rolled_back(self, support, sent):
        with pytest.raises(RuntimeError), tenant_atomic():
            Vectorising.objects.all().delete()
            Vectorising.objects.create(model=support).wake_worker()
            raise RuntimeError
        assert sent() == []

    def test_a_broker_that_is_away_does_not_undo_what_was_committed(self, support, settings, job, sent, caplog):
        folder = settings.BROKER_DIR / "messages"
        folder.rmdir()
        try:
            with tenant_atomic():
                on_tenant_commit(lambda: send_message(Vectorising, 1, job.pk))
        finally:
            folder.mkdir()
        assert "The broker is away" in caplog.text
        assert list(Vectorising.abandoned()) == [job]
