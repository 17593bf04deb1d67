"""Long work that survives its worker: a job's row is the truth, a lease says who works on it.

A message that comes late, twice or never changes nothing: whoever holds the lease works, and a lease that has run out is
taken by the next worker. What the work is stands in the models that inherit from Job.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import uuid4

from django.conf import settings
from django.db import DatabaseError, models
from django.utils import timezone
from kombu.exceptions import OperationalError

from tenants.models import Tenant
from tenants.store import StoreNotReady, activated, active_store, on_tenant_commit

logger = logging.getLogger(__name__)


class JobFailed(Exception):
    """The work cannot be done; the text says why and what to do, for the person who started it."""


class JobStopped(Exception):
    """Somebody pressed stop, or the job's row, model or tenant is gone."""


class JobLost(Exception):
    """The lease ran out and another worker has taken the job."""


class Job(models.Model):
    """A queued, running or ended piece of long work."""

    class State(models.TextChoices):
        QUEUED = "queued", "Waiting for a worker"
        RUNNING = "running", "Running"
        DONE = "done", "Finished"
        FAILED = "failed", "Failed"
        STOPPED = "stopped", "Stopped"

    OPEN_STATES = (State.QUEUED.value, State.RUNNING.value)

    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    message = models.TextField(
        blank=True, help_text="How it ended, or what it is doing, for a person to read."
    )
    lease = models.CharField(
        max_length=32, blank=True, help_text="The token of the worker that holds the job."
    )
    leased_until = models.DateTimeField(null=True, blank=True)
    is_stop_requested = models.BooleanField(default=False)
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
        return self.state == self.State.RUNNING and (
            self.leased_until is None or self.leased_until < timezone.now()
        )

    @property
    def seconds(self) -> float:
        """How long it has been running, or ran."""
        if self.started_at is None:
            return 0.0
        return ((self.ended_at or timezone.now()) - self.started_at).total_seconds()

    @classmethod
    def abandoned(cls) -> models.QuerySet:
        """Return the open jobs nobody works on: queued ones, and running ones whose lease ran out."""
        return cls.objects.filter(state__in=cls.OPEN_STATES).filter(
            models.Q(leased_until=None) | models.Q(leased_until__lt=timezone.now())
        )

    @classmethod
    def take(cls, pk: int) -> "Job | None":
        """Return the job with its lease taken, or None when it is not there to be taken."""
        now = timezone.now()
        lease = uuid4().hex
        taken = (
            cls.abandoned()
            .filter(pk=pk)
            .update(state=cls.State.RUNNING, lease=lease, leased_until=now + _lease_time())
        )
        if not taken:
            return None
        job = cls.objects.get(pk=pk)
        if job.started_at is None:
            job.started_at = now
            job.save(update_fields=["started_at"])
        return job

    def wake_worker(self, task) -> None:
        """Send the job's message once its row is committed. Without a broker the next look for open jobs finds it."""
        store = active_store()

        def send():
            try:
                task.delay(store.tenant_id, self.pk)
            except OperationalError:
                logger.warning("The broker is away; job %s waits for a worker that looks for it.", self.pk)

        on_tenant_commit(send)

    def request_stop(self) -> None:
        """Ask the worker to stop; a job that nobody works on is stopped at once."""
        rows = type(self).objects.filter(pk=self.pk, state__in=self.OPEN_STATES)
        rows.update(is_stop_requested=True)
        if type(self).abandoned().filter(pk=self.pk).exists():
            rows.update(state=self.State.STOPPED, ended_at=timezone.now(), message="Stopped.")

    def finish(self, state: "Job.State", message: str) -> None:
        """End the job, unless another worker has taken it meanwhile."""
        self.state, self.message, self.ended_at = state, message, timezone.now()
        type(self).objects.filter(pk=self.pk, lease=self.lease).update(
            state=state, message=message, ended_at=self.ended_at, leased_until=None
        )

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
        """Raise JobStopped or JobLost when the work must end here."""
        if self._loss is not None:
            raise self._loss
        self._loss = self._standing()
        if self._loss is not None:
            raise self._loss

    def _keep(self) -> None:
        while not self._ended.wait(settings.SITEWISE_LEASE_SECONDS / 3):
            try:
                with activated(self._store):
                    self._loss = self._standing() or self._renew()
            except StoreNotReady:
                self._loss = JobStopped("The tenant is gone.")
            except DatabaseError:
                continue  # a busy store: the next round renews, a third of the lease later
            if self._loss is not None:
                return

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
        rows = type(self._job).objects.filter(pk=self._job.pk, lease=self._job.lease)
        return (
            None
            if rows.update(leased_until=timezone.now() + _lease_time())
            else JobLost("The lease is gone.")
        )


def perform(job_class: type[Job], tenant_id: int, pk: int, work: Callable[[Job, Lease], str]) -> Job | None:
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
                _perform_taken(job, work)
            return job
    except StoreNotReady:
        logger.warning("Tenant %s has no usable store: job %s waits.", tenant.slug, pk)
        return None


def _perform_taken(job: Job, work: Callable[[Job, Lease], str]) -> None:
    with job.leased() as lease:
        try:
            job.finish(job.State.DONE, work(job, lease))
        except JobStopped as error:
            job.finish(job.State.STOPPED, str(error))
        except JobLost:
            logger.warning("Job %s of %s went on elsewhere.", job.pk, type(job).__name__)
        except JobFailed as error:
            job.finish(job.State.FAILED, str(error))
        except Exception as error:
            # The person who waits must see that it ended, whatever went wrong; the operator gets the traceback.
            logger.exception("Job %s of %s failed.", job.pk, type(job).__name__)
            job.finish(
                job.State.FAILED, f"Something unexpected went wrong ({type(error).__name__}: {error})."
            )


def _lease_time() -> timedelta:
    return timedelta(seconds=settings.SITEWISE_LEASE_SECONDS)
