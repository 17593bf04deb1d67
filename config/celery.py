"""The worker: Celery on an embedded broker in the data folder, or on the one CELERY_BROKER_URL names.

A message only wakes a worker up. Which work there is stands in the jobs' rows, so every worker also looks for jobs that
nobody works on, and for sites that are due to be read again: when it starts, and then as often as a lease lasts.
Before its first look it rebuilds outdated indexes.
"""

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable

from celery import Celery, bootsteps, signals
from django.conf import settings
from django.db import connections

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

logger = logging.getLogger(__name__)

# Set by `serve` for the worker it starts: a worker whose parent was killed ends too.
PARENT_VARIABLE = "SITEWISE_SERVE_PID"
POLLING_SECONDS = 0.5
CONNECT_SECONDS = 4  # as long as Celery waits for RabbitMQ; without it, Redis' client waits for minutes
# Threads share the embedder's memory, and a job mostly waits: for a website, an LLM, or arithmetic outside the GIL.
WORKER_COMMAND = (
    # Containers run everything as root; Celery's warning is about messages that carry code, and ours carry numbers.
    *(sys.executable, "-W", "ignore:You're running the worker with superuser privileges"),
    *("-m", "celery", "--app", "config.celery", "--quiet", "worker"),
    *("--pool", "threads", "--concurrency", "2", "--loglevel", "WARNING"),
    *("--without-gossip", "--without-mingle", "--without-heartbeat"),
)


def _broker_options() -> dict:
    """Return Celery's settings for the broker: files in the data folder when no broker is named."""
    if settings.CELERY_BROKER_URL:
        waits = {"socket_connect_timeout": CONNECT_SECONDS} if settings.CELERY_BROKER_URL.startswith("redis") else {}
        return {"broker_url": settings.CELERY_BROKER_URL, "broker_transport_options": waits}
    messages, control = settings.BROKER_DIR / "messages", settings.BROKER_DIR / "control"
    for folder in (messages, control):
        folder.mkdir(parents=True, exist_ok=True)
    return {
        "broker_url": "filesystem://localhost//",
        "broker_transport_options": {
            "data_folder_in": str(messages),
            "data_folder_out": str(messages),
            "control_folder": str(control),
            "polling_interval": POLLING_SECONDS,
        },
        # Remote control would leave a queue of files behind for each worker that ever ran.
        "worker_enable_remote_control": False,
    }


class LookForJobs(bootsteps.StartStopStep):
    """A step of the worker: looks for jobs that nobody works on, and hands its own back when the worker ends."""

    # Started after the pool, and so stopped before it: the pool waits for its threads, which end once handed back.
    requires = frozenset({"celery.worker.components:Pool"})

    def __init__(self, worker, **options):
        self._ended = threading.Event()
        # The pool is stopped some seconds after the signal to end: time in which the jobs can come to their next step.
        signals.worker_shutting_down.connect(self.stop)
        self._thread = threading.Thread(target=self._look_repeatedly, name="look-for-jobs", daemon=True)

    def start(self, worker):
        self._thread.start()

    def stop(self, worker=None, **_):
        from models_app.lease import hand_back_jobs

        self._ended.set()
        hand_back_jobs()

    terminate = stop

    def _look_repeatedly(self):
        from crawler.tasks import forget_old_uploads, start_due_imports, take_up_abandoned_jobs
        from models_app.tasks import rebuild_outdated_indexes

        _try(rebuild_outdated_indexes)
        while not self._ended.is_set():
            _try(start_due_imports)
            _try(take_up_abandoned_jobs)
            _try(forget_old_uploads)
            if _is_orphan():
                os.kill(os.getpid(), signal.SIGTERM)
            self._ended.wait(settings.SITEWISE_LEASE_SECONDS)


def _try(step: Callable[[], object]) -> None:
    try:
        step()
    except (
        Exception
    ):  # a database that is busy or being migrated: a worker's next look, or the next worker, finds it well
        logger.exception("%s failed.", step.__name__)
    finally:
        connections.close_all()


def _is_orphan() -> bool:
    parent = os.environ.get(PARENT_VARIABLE)
    return parent is not None and os.getppid() != int(parent)


app = Celery("sitewise")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.update(_broker_options())
app.steps["worker"].add(LookForJobs)
app.autodiscover_tasks()
