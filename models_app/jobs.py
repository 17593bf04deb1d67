"""Long work that survives its worker: a job's row is the truth, a lease says who works on it.

A message that comes late, twice or never changes nothing: whoever holds the lease works, and a lease that has run out
is taken by the next worker. What the work is stands in the models that inherit from Job.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import uuid4

from celery import current_app
from django.db import DatabaseError, models
from django.utils import timezone

from models_app.lease import JobLost, JobPaused, JobStopped, Lease, TurnEnds, WorkEnds, WorkerLeaves, lease_time
from tenants.models import Tenant
from tenants.store import StoreNotReady, activated, active_store, on_tenant_commit

logger = logging.getLogger(__name__)

# A message older than this has woken nobody, and the workers' own look for open jobs has replaced it.
MESSAGE_SECONDS = 60
# A worker that is there and free takes a job within seconds, with or without its message.
PATIENCE = timedelta(seconds=30)


class JobFailed(Exception):
    """The work cannot be done; the text says why and what to do, for the person who started it."""


class Job(models.Model):
    """A queued, running or ended piece of long work."""

    class State(models.TextChoices):
        QUEUED = "queued", "Waiting for a worker"
        RUNNING = "running", "Running"
        PAUSED = "paused", "Paused"
        DONE = "done", "Finished"
        FAILED = "failed", "Failed"
        STOPPED = "stopped", "Stopped"

    ACTIVE_STATES = (State.QUEUED.value, State.RUNNING.value)
    OPEN_STATES = (*ACTIVE_STATES, State.PAUSED.value)
    task_name = ""  # of the worker's task that does jobs of this kind

    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    message = models.TextField(blank=True, help_text="How it ended, or what it is doing, for a person to read.")
    lease = models.CharField(max_length=32, blank=True, help_text="The token of the worker that holds the job.")
    leased_until = models.DateTimeField(null=True, blank=True)  # of a queued job: since when it waits again
    is_stop_requested = models.BooleanField(default=False)
    is_pause_requested = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True
        ordering = ["-id"]

    @property
    def is_open(self) -> bool:
        return self.state in self.OPEN_STATES

    @property
    def is_interrupted(self) -> bool:
        """Whether its worker is gone: the next worker takes it up."""
        return self.state == self.State.RUNNING and (self.leased_until is None or self.leased_until < timezone.now())

    @property
    def is_left_waiting(self) -> bool:
        """Whether it waits for so long that the workers are all busy, or none is there."""
        waits_since = self.leased_until or self.created_at
        return self.state == self.State.QUEUED and waits_since < timezone.now() - PATIENCE

    @property
    def seconds(self) -> float:
        """How long it has been running, or ran."""
        if self.started_at is None:
            return 0.0
        return ((self.ended_at or timezone.now()) - self.started_at).total_seconds()

    @classmethod
    def abandoned(cls) -> models.QuerySet:
        """Return the open jobs nobody works on: queued ones, and running ones whose lease ran out."""
        return cls.objects.filter(state__in=cls.ACTIVE_STATES).filter(
            models.Q(leased_until=None) | models.Q(leased_until__lt=timezone.now())
        )

    @classmethod
    def take(cls, pk: int) -> "Job | None":
        """Return the job with its lease taken, or None when it is not there to be taken."""
        now = timezone.now()
        lease = uuid4().hex
        # One statement: of two workers that come at once, one changes the row and the other finds it leased.
        taken = (
            cls.abandoned().filter(pk=pk).update(state=cls.State.RUNNING, lease=lease, leased_until=now + lease_time())
        )
        if not taken:
            return None
        cls.objects.filter(pk=pk, started_at=None).update(started_at=now)
        return cls.objects.filter(pk=pk, lease=lease).first()

    def wake_worker(self) -> None:
        """Send the job's message once its row is committed; never when it is rolled back."""
        store = active_store()
        on_tenant_commit(lambda: send_message(type(self), store.tenant_id, self.pk))

    def request_stop(self) -> None:
        """Ask the worker to stop; a job that nobody works on, a paused one too, is stopped at once."""
        self._rows(*self.OPEN_STATES).update(is_stop_requested=True)
        ended = {"state": self.State.STOPPED, "message": "Stopped.", "ended_at": timezone.now()}
        self._rows(self.State.PAUSED).update(**ended)
        self.end_if_abandoned("Stopped.")

    def request_pause(self) -> None:
        """Ask the worker to pause; a job that nobody works on is paused at once."""
        self._rows(*self.ACTIVE_STATES).update(is_pause_requested=True)
        self._change_abandoned(state=self.State.PAUSED)

    def resume(self) -> None:
        """Let a worker go on with a paused job; one that was only asked to pause goes on as well."""
        self._rows(*self.OPEN_STATES).update(is_pause_requested=False)
        if self._rows(self.State.PAUSED).update(state=self.State.QUEUED, leased_until=timezone.now()):
            self.wake_worker()

    def end_if_abandoned(self, message: str) -> bool:
        """Stop the job when nobody works on it; returns whether it did."""
        return self._change_abandoned(state=self.State.STOPPED, message=message, ended_at=timezone.now())

    def _change_abandoned(self, **fields) -> bool:
        # Without its lease, a worker that was only held up finds the job lost.
        return bool(type(self).abandoned().filter(pk=self.pk).update(lease="", leased_until=None, **fields))

    def _rows(self, *states: str) -> models.QuerySet:
        """Return the job's row if it is in one of the states."""
        return type(self).objects.filter(pk=self.pk, state__in=states)

    def finish(self, state: "Job.State", message: str) -> None:
        """End the job, unless another worker has taken it meanwhile."""
        self._give_up_lease(state=state, message=message, ended_at=timezone.now())

    def hand_back(self) -> None:
        """Let another worker go on with the job at once."""
        self._give_up_lease(state=self.State.QUEUED, lease="", leased_until=timezone.now())

    def pause(self) -> None:
        """Leave the job until somebody resumes it; unless they have meanwhile, or stopped it."""
        self._give_up_lease(state=self.State.PAUSED, lease="")
        paused = self._rows(self.State.PAUSED)
        if paused.filter(is_stop_requested=True).exists():
            self.request_stop()
        elif paused.filter(is_pause_requested=False).exists():
            self.resume()

    def _give_up_lease(self, **fields) -> None:
        fields = {"leased_until": None, **fields}
        type(self).objects.filter(pk=self.pk, lease=self.lease).update(**fields)
        for name, value in fields.items():
            setattr(self, name, value)

    @contextmanager
    def leased(self) -> Iterator["Lease"]:
        """Keep the lease alive until the block ends, however long one step of the work takes."""
        lease = Lease(self)
        lease.start()
        try:
            yield lease
        finally:
            lease.end()


Work = Callable[[Job, Lease], str]


def perform(job_class: type[Job], tenant_id: int, pk: int, work: Work) -> Job | None:
    """Do a job if it is there to be taken, and record how it ended; returns the job as it ended, or None.

    `work` gets the job and its lease, and returns the message for the person who started it.
    """
    tenant = Tenant.objects.filter(pk=tenant_id, is_suspended=False).first()
    if tenant is None:
        return None
    try:
        with activated(tenant):
            job = job_class.take(pk)
            if job is not None:
                perform_taken(job, work)
            return job
    except StoreNotReady as error:
        logger.warning("Job %s waits: %s", pk, error)
        return None


def perform_taken(job: Job, work: Work) -> None:
    """Do a job whose lease is held, in the active store, and record how it ended."""
    with job.leased() as lease:
        try:
            job.finish(job.State.DONE, work(job, lease))
        except KeyboardInterrupt:
            job.finish(job.State.STOPPED, "Stopped from the keyboard.")
            raise
        except Exception as error:
            # The person who waits must see that it ended, whatever went wrong.
            _record_end(job, _cause(error, lease))


def send_message(job_class: type[Job], tenant_id: int, pk: int) -> None:
    """Tell the workers of a job. A message may be lost without harm: workers look for open jobs themselves."""
    send_task(job_class.task_name, tenant_id, pk)


def send_task(name: str, *arguments: int) -> None:
    """Tell the workers of a task; nothing may depend on its being done."""
    try:
        current_app.send_task(name, arguments, expires=MESSAGE_SECONDS)
    except Exception as error:  # whatever a broker raises: what was committed stands, and is found without a message
        logger.warning("The broker is away (%s); %s%s waits for a worker that looks for it.", error, name, arguments)


def _cause(error: Exception, lease: Lease) -> Exception:
    """Return why the work ended: often an error of the database is but the trace of a deleted model or tenant."""
    try:
        lease.check_anew()
    except (DatabaseError, TurnEnds):
        return error
    except WorkEnds as cause:
        return cause
    return error


def _record_end(job: Job, error: Exception) -> None:
    match error:
        case WorkerLeaves():
            job.hand_back()
        case TurnEnds():
            job.hand_back()
            job.wake_worker()
        case JobPaused():
            job.pause()
        case JobLost():
            logger.warning("Job %s of %s went on elsewhere.", job.pk, type(job).__name__)
        case JobStopped():
            job.finish(job.State.STOPPED, str(error))
        case JobFailed() | StoreNotReady():
            job.finish(job.State.FAILED, str(error))
        case _:
            logger.error("Job %s of %s failed.", job.pk, type(job).__name__, exc_info=error)
            job.finish(
                job.State.FAILED, f"Something unexpected went wrong ({type(error).__name__}: {error}). Start it again."
            )
