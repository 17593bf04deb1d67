"""What a worker does for conversations: sums up what a session has no room for."""

import logging

from celery import shared_task

from chat.sessions import SUMMARY_TASK
from chat.summaries import compress_history
from tenants.models import Tenant
from tenants.store import StoreNotReady, activated

logger = logging.getLogger(__name__)


@shared_task(name=SUMMARY_TASK)
def compress(tenant_id: int, session_pk: int, left_out: int) -> None:
    """Sum up the oldest exchanges of a session. A message that comes late or twice finds nothing left to do."""
    tenant = Tenant.objects.filter(pk=tenant_id, is_suspended=False).first()
    if tenant is None:
        return
    try:
        with activated(tenant):
            compress_history(session_pk, left_out)
    except StoreNotReady as error:
        logger.warning("A conversation is not summed up: %s", error)
