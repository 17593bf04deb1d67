"""Imports as a worker does them, the look for jobs that nobody works on, and for sites to be read again."""

import logging
from contextlib import suppress
from datetime import timedelta

from celery import shared_task
from django.utils import timezone

from crawler.crawl import ImportRunning, import_site, start_import
from crawler.models import Import
from crawler.same_site import imports_of_site, options_of_site
from crawler.upload import forget_stale_uploads
from crawler.web.site import SiteUnreachable
from models_app.jobs import perform, send_message
from models_app.lease import note_waiting_jobs
from models_app.models import MLModel, Vectorising
from models_app.tasks import give_memory_back
from tenants.installation import ready_tenants
from tenants.store import StoreNotReady, activated

logger = logging.getLogger(__name__)


@shared_task(name=Import.task_name)
def run_import(tenant_id: int, pk: int) -> None:
    """Do the import of this row, if nobody else does."""
    perform(Import, tenant_id, pk, import_site)
    give_memory_back()


def take_up_abandoned_jobs() -> int:
    """Send a message for every open job that nobody works on, in all tenants; returns how many.

    Found are the jobs of killed workers, once their lease has run out, and those whose message was lost. Those that
    were never begun come first: long imports that take turns must not keep a new one waiting.
    """
    found = []
    for tenant in ready_tenants():
        with suppress(StoreNotReady), activated(tenant):
            for job_class in (Import, Vectorising):
                open_jobs = job_class.abandoned().order_by("pk").values_list("started_at", "pk")
                found += [(started_at is not None, (job_class, tenant.pk, pk)) for started_at, pk in open_jobs]
    for _, message in sorted(found, key=lambda job: job[0]):
        send_message(*message)
    note_waiting_jobs(len(found))
    return len(found)


def forget_old_uploads() -> int:
    """Delete the files whose preview nobody has confirmed for a day, in all tenants; returns how many."""
    count = 0
    for tenant in ready_tenants():
        with suppress(StoreNotReady), activated(tenant):
            count += forget_stale_uploads()
    return count


def start_due_imports() -> int:
    """Start an import of every website whose time to be read again has come, in all tenants; returns how many."""
    count = 0
    for tenant in ready_tenants():
        with suppress(StoreNotReady), activated(tenant):
            count += sum(map(_start_if_due, MLModel.objects.exclude(website="").exclude(recrawl_days=None)))
    return count


def _start_if_due(model: MLModel) -> bool:
    """Start the model's import if it is due, with the options of its website's last; returns whether it was."""
    last = next(iter(imports_of_site(model)), None)
    if last and (last.is_open or last.created_at > timezone.now() - timedelta(days=model.recrawl_days)):
        return False
    try:
        start_import(model, model.website, is_scheduled=True, **options_of_site(model))
    except ImportRunning:
        return False  # of another kind: the next look finds it ended
    except SiteUnreachable as error:
        logger.warning("The scheduled import of %s was not started: %s", model.website, error)
        return False
    return True
