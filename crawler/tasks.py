"""Imports as a worker does them, and the look for jobs that nobody works on."""

from celery import shared_task

from crawler.crawl import import_site
from crawler.models import Import
from models_app.jobs import perform, send_message
from models_app.memory import return_free_memory
from models_app.models import Vectorising
from tenants.installation import ready_tenants


@shared_task(name=Import.task_name)
def run_import(tenant_id: int, pk: int) -> None:
    """Do the import of this row, if nobody else does."""
    perform(Import, tenant_id, pk, import_site)
    return_free_memory()


def take_up_abandoned_jobs() -> int:
    """Send a message for every open job that nobody works on, in all tenants; returns how many.

    Found are the jobs of killed workers, once their lease has run out, and those whose message was lost.
    """
    sent = 0
    for tenant in ready_tenants():
        for job_class in (Import, Vectorising):
            for pk in job_class.abandoned().order_by("pk").values_list("pk", flat=True):
                send_message(job_class, tenant.pk, pk)
                sent += 1
    return sent
