"""Says who works on a job: a lease is renewed while its worker lives, and tells the worker when the work must end.

What becomes of the job then is jobs.py's matter.
"""

import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import DatabaseError, connections
from django.utils import timezone

from tenants.models import Tenant
from tenants.store import StoreDiskFails, StoreNotReady, activated, active_store, connection

if TYPE_CHECKING:
    from models_app.jobs import Job

WAIT_STEP_SECONDS = 0.25
# How old an answer about the job's standing may be between two steps; a transaction that writes always asks anew.
STANDING_SECONDS = 0.25
# How long a job may go on while others wait for a worker: long enough that starting anew costs little.
TURN_SECONDS = 300

_is_worker_leaving = threading.Event()
_are_jobs_waiting = threading.Event()


class WorkEnds(Exception):
    """The work on a job must end here, whatever it was about to do."""


class JobStopped(WorkEnds):
    """Somebody pressed stop, or the job's row, model or tenant is gone."""


class JobPaused(WorkEnds):
    """Somebody pressed pause: the job waits until it is resumed."""


class JobLost(WorkEnds):
    """The lease ran out and another worker has taken the job."""


class WorkerLeaves(WorkEnds):
    """This process was asked to end: the job goes back for another worker to go on with."""


class TurnEnds(WorkEnds):
    """The job has had the worker for long and others wait: it goes back to the end of the queue."""


class Lease:
    """Renews a job's lease from a thread of its own; `check()` between steps raises when the work must end."""

    def __init__(self, job: "Job", turn_seconds: float = TURN_SECONDS):
        self._job, self._store = job, active_store()
        self._ended = threading.Event()
        self._loss: Exception | None = None
        self._asked_at = float("-inf")
        self._turn_ends_at = time.monotonic() + turn_seconds
        # Asked in each transaction that writes: made anew it took longer than the answer.
        own = type(job).objects.filter(pk=job.pk).order_by()
        self._row = own.values_list("lease", "is_stop_requested", "is_pause_requested")
        self._thread = threading.Thread(target=self._keep, name=f"lease-{job.lease}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def check(self) -> None:
        """Raise WorkEnds (which kind says why) when the work must end here.

        Called first in a transaction that writes, it keeps a worker that was lost from writing over its successor.
        """
        self._loss = self._loss or self._known_standing()
        if self._loss is not None:
            raise self._loss
        if _is_worker_leaving.is_set():
            raise WorkerLeaves
        if _are_jobs_waiting.is_set() and time.monotonic() > self._turn_ends_at:
            _are_jobs_waiting.clear()  # one job gives way for each look that found others waiting
            raise TurnEnds

    def check_anew(self) -> None:
        """Raise as `check` does, by what holds this very moment."""
        self._asked_at = float("-inf")
        self.check()

    def wait(self, seconds: float) -> None:
        """Wait between two steps, as `check` allows."""
        end = time.monotonic() + seconds
        self.check()
        while (left := end - time.monotonic()) > 0:
            _is_worker_leaving.wait(min(left, WAIT_STEP_SECONDS))
            self.check()

    def _known_standing(self) -> Exception | None:
        """Return the standing now in a transaction, else as it was a moment ago: asking costs as much as a step."""
        if connection().in_atomic_block:
            return self._row_standing()
        if time.monotonic() - self._asked_at < STANDING_SECONDS:
            return None
        self._asked_at = time.monotonic()
        return self._standing()

    def _keep(self) -> None:
        try:
            while not isinstance(self._loss, JobLost) and not self._ended.wait(settings.SITEWISE_LEASE_SECONDS / 3):
                self._loss = self._try_to_renew() or self._loss
        finally:
            connections.close_all()  # those of this thread: nobody else closes them

    def _try_to_renew(self) -> Exception | None:
        try:
            with activated(self._store):
                standing = self._standing()
                self._renew()  # asked to stop or pause too: it is this worker's until the step it is in has ended
                return standing
        except StoreDiskFails:
            return None  # what is full now may not be so a third of the lease later
        except StoreNotReady:
            return JobStopped("The tenant is gone.")
        except DatabaseError:
            return None  # a busy store: the next round renews, a third of the lease later

    def _standing(self) -> Exception | None:
        if not Tenant.objects.filter(pk=self._store.tenant_id, is_suspended=False).exists():
            return JobStopped("The tenant is gone or suspended.")
        return self._row_standing()

    def _row_standing(self) -> Exception | None:
        row = next(iter(self._row.all()), None)
        if row is None:
            return JobStopped("The model is gone.")
        lease, is_stop_requested, is_pause_requested = row
        if lease != self._job.lease:
            return JobLost("Another worker has taken this job.")
        if is_stop_requested:
            return JobStopped("Stopped.")
        return JobPaused() if is_pause_requested else None

    def _renew(self) -> None:
        rows = type(self._job).objects.filter(pk=self._job.pk, lease=self._job.lease, state=self._job.State.RUNNING)
        rows.update(leased_until=timezone.now() + lease_time())


def hand_back_jobs() -> None:
    """Make every job of this process end at its next step, for another worker to go on with."""
    _is_worker_leaving.set()


def note_waiting_jobs(count: int) -> None:
    """Tell this process' jobs how many others wait for a worker: one that has had its turn gives way to them."""
    if count:
        _are_jobs_waiting.set()
    else:
        _are_jobs_waiting.clear()


def lease_time() -> timedelta:
    """Return how long a lease lasts from now."""
    return timedelta(seconds=settings.SITEWISE_LEASE_SECONDS)
