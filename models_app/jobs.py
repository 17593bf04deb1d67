"""Long work that survives its worker: a job's row is the truth, a lease says who works on it.

A message that comes late, twice or never changes nothing: whoever holds the lease works, and a lease that has run out
is taken by the next worker. What the work is stands in the models that inherit from Job.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import uuid4

from celery import current_app
from django.conf import settings
from django.db import DatabaseError, connections, models
from django.utils import timezone

from tenants.models import Tenant
from tenants.store import StoreNotReady, activated, active_store, on_tenant_commit

logger = logging.getLogger(__name__)

# A message older than this has woken nobody, and the workers' own look for open jobs has replaced it.
MESSAGE_SECONDS = 60
WAIT_STEP_SECONDS = 0.25
# A worker that is there and free takes a job within seconds, with or without its message.
PATIENCE = timedelta(seconds=30)

_is_worker_leaving = threading.Event()


class JobFailed(Exception):
    """The work cannot be done; the text says why and what to do, for the person who started it."""


class JobStopped(Exception):
    """Somebody pressed stop, or the job's row, model or tenant is gone."""


class JobLost(Exception):
    """The lease ran out and another worker has taken the job."""


class WorkerLeaves(Exception):
    """This process was asked to end: the job goes back for another worker to go on with."""


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
    leased_until = models.DateTimeField(null=True, blank=True)
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
        return self.state == self.State.QUEUED and self.created_at < timezone.now() - PATIENCE

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
            cls.abandoned().filter(pk=pk).update(state=cls.State.RUNNING, lease=lease, leased_until=now + _lease_time())
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
        """Ask the worker to stop; a job that nobody works on is stopped at once."""
        type(self).objects.filter(pk=self.pk, state__in=self.OPEN_STATES).update(is_stop_requested=True)
        self.end_if_abandoned("Stopped.")

    def end_if_abandoned(self, message: str) -> bool:
        """Stop the job when nobody works on it; returns whether it did."""
        rows = type(self).abandoned().filter(pk=self.pk)
        ended = {"state": self.State.STOPPED, "message": message, "ended_at": timezone.now()}
        # Without its lease, a worker that was only held up finds the job lost.
        return bool(rows.update(lease="", leased_until=None, **ended))

    def finish(self, state: "Job.State", message: str) -> None:
        """End the job, unless another worker has taken it meanwhile."""
        self._give_up_lease(state=state, message=message, ended_at=timezone.now())

    def hand_back(self) -> None:
        """Let another worker go on with the job at once."""
        self._give_up_lease(state=self.State.QUEUED, lease="")

    def _give_up_lease(self, **fields) -> None:
        type(self).objects.filter(pk=self.pk, lease=self.lease).update(leased_until=None, **fields)
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


class Lease:
    """Renews a job's lease from a thread of its own; `check()` between steps raises when the work must end."""

    def __init__(self, job: Job):
        self._job, self._store = job, active_store()
        self._ended = threading.Event()
        self._loss: Exception | None = None
        self._thread = threading.Thread(target=self._keep, name=f"lease-{job.lease}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def check(self) -> None:
        """Raise JobStopped, JobLost or WorkerLeaves when the work must end here.

        Called first in a transaction that writes, it keeps a worker that was lost from writing over its successor.
        """
        loss = self._loss or self._standing()
        if loss is not None:
            self._loss = loss
            raise loss
        if _is_worker_leaving.is_set():
            raise WorkerLeaves

    def wait(self, seconds: float) -> None:
        """Wait between two steps, as `check` allows."""
        end = time.monotonic() + seconds
        self.check()
        while (left := end - time.monotonic()) > 0:
            _is_worker_leaving.wait(min(left, WAIT_STEP_SECONDS))
            self.check()

    def _keep(self) -> None:
        try:
            while self._loss is None and not self._ended.wait(settings.SITEWISE_LEASE_SECONDS / 3):
                self._loss = self._try_to_renew()
        finally:
            connections.close_all()  # those of this thread: nobody else closes them

    def _try_to_renew(self) -> Exception | None:
        try:
            with activated(self._store):
                return self._standing() or self._renew()
        except StoreNotReady:
            return JobStopped("The tenant is gone.")
        except DatabaseError:
            return None  # a busy store: the next round renews, a third of the lease later

    def _standing(self) -> Exception | None:
        if not Tenant.objects.filter(pk=self._store.tenant_id, is_suspended=False).exists():
            return JobStopped("The tenant is gone or suspended.")
        row = type(self._job).objects.filter(pk=self._job.pk).values("lease", "is_stop_requested").first()
        if row is None:
            return JobStopped("The model is gone.")
        if row["lease"] != self._job.lease:
            return JobLost("Another worker has taken this job.")
        return JobStopped("Stopped.") if row["is_stop_requested"] else None

    def _renew(self) -> Exception | None:
        rows = type(self._job).objects.filter(pk=self._job.pk, lease=self._job.lease, state=Job.State.RUNNING)
        rows.update(leased_until=timezone.now() + _lease_time())
        return None


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
    try:
        current_app.send_task(job_class.task_name, (tenant_id, pk), expires=MESSAGE_SECONDS)
    except Exception as error:  # whatever a broker raises: what was committed stands, and is found without a message
        logger.warning("The broker is away (%s); job %s waits for a worker that looks for it.", error, pk)


def hand_back_jobs() -> None:
    """Make every job of this process end at its next step, for another worker to go on with."""
    _is_worker_leaving.set()


def _cause(error: Exception, lease: Lease) -> Exception:
    """Return why the work ended: often an error of the database is but the trace of a deleted model or tenant."""
    try:
        lease.check()
    except (JobStopped, JobLost, WorkerLeaves) as cause:
        return cause
    except DatabaseError:
        return error
    return error


def _record_end(job: Job, error: Exception) -> None:
    match error:
        case WorkerLeaves():
            job.hand_back()
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


def _lease_time() -> timedelta:
    return timedelta(seconds=settings.SITEWISE_LEASE_SECONDS)
