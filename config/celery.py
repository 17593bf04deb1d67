"""The worker: Celery on an embedded broker in the data folder, or on the one CELERY_BROKER_URL names.

A message only wakes a worker up. Which work there is stands in the jobs' rows, so every worker also looks for jobs that
nobody works on: when it starts, and every half minute.
"""

import os

from celery import Celery, bootsteps
from django.conf import settings
from kombu.utils.url import maybe_sanitize_url

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")


def _broker_options() -> dict:
    """Return Celery's settings for the broker: files in the data folder when no broker is named."""
    if settings.CELERY_BROKER_URL:
        return {"broker_url": settings.CELERY_BROKER_URL}
    folders = {
        "data_folder_in": settings.BROKER_DIR / "messages",
        "data_folder_out": settings.BROKER_DIR / "messages",
        "control_folder": settings.BROKER_DIR / "control",
    }
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    options = {name: str(folder) for name, folder in folders.items()}
    return {"broker_url": "filesystem://", "broker_transport_options": options}


class TakeUpAbandonedJobs(bootsteps.StartStopStep):
    """A step of the worker that looks for jobs nobody works on, at its start and every half lease thereafter."""

    requires = frozenset({"celery.worker.components:Timer"})

    def start(self, worker):
        from crawler.tasks import take_up_abandoned_jobs

        worker.timer.call_after(0, take_up_abandoned_jobs)
        self.timer = worker.timer.call_repeatedly(settings.SITEWISE_LEASE_SECONDS, take_up_abandoned_jobs)

    def stop(self, worker):
        self.timer.cancel()


app = Celery("sitewise")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.update(_broker_options())
app.steps["worker"].add(TakeUpAbandonedJobs)
app.autodiscover_tasks()


def broker_name() -> str:
    """Return the broker's address without its password, for messages."""
    return maybe_sanitize_url(app.conf.broker_url)
