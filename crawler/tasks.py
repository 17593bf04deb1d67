"""Imports as a worker does them, and the look for jobs that nobody works on."""

from contextlib import suppress

from celery import shared_task

from crawler.crawl import import_site
from crawler.models import Import
from models_app.jobs import perform, send_message
from models_app.models import Vectorising
from models_app.tasks import give_memory_back
from tenants.installation import ready_tenants
from tenants.store import StoreNotReady, activated


@shared_task(name=Import.task_name)
def run_import(tenant_id: int, pk: int) -> None:
    """Do the import of this row, if nobody else does."""
    perform(Import, tenant_id, pk, import_site)
    give_memory_back()


def take_up_abandoned_jobs() -> int:
    """Send a message for every open job that nobody works on, in all tenants; returns how many.

    Found are the jobs of killed workers, once their lease has run out, and those whose message was lost.
    """
    found = []
    for tenant in ready_tenants():
        with suppress(StoreNotReady), activated(tenant):
            for job_class in (Import, Vectorising):
                open_jobs = job_class.abandoned().order_by("pk").values_list("pk", flat=True)
                found += [(job_class, tenant.pk, pk) for pk in open_jobs]
    for message in found:
        send_message(*message)
    return len(found)
