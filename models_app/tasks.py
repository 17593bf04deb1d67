"""What a worker does for models: vectorising, and indexes brought up to date when it starts."""

import gc
import logging
import time

from celery import shared_task
from django.db import DatabaseError, IntegrityError

from models_app import calibration, index, tokens
from models_app.embedder import EmbeddingError, answering_space, space_of
from models_app.jobs import JobFailed, Lease, perform
from models_app.local_embedder import local_embedder
from models_app.memory import return_free_memory
from models_app.models import MLModel, Vectorising
from models_app.vectors import Spent, vectorise_missing
from tenants.installation import ready_tenants
from tenants.store import StoreNotReady, activated, tenant_atomic

logger = logging.getLogger(__name__)


def start_vectorising(model: MLModel) -> Vectorising:
    """Return the model's open vectorising, started now unless one is open already."""
    try:
        with tenant_atomic():
            job = Vectorising.objects.create(model=model)
            job.wake_worker()
            return job
    except IntegrityError:
        return Vectorising.objects.get(model=model, state__in=Vectorising.OPEN_STATES)


@shared_task(name=Vectorising.task_name)
def vectorise(tenant_id: int, pk: int) -> None:
    """Do the vectorising of this row, if nobody else does."""
    perform(Vectorising, tenant_id, pk, make_vectors)
    give_memory_back()


def give_memory_back() -> None:
    """Unload what a job needed, as a worker mostly waits and shares its machine with the web; the next job loads it."""
    local_embedder.cache_clear()
    tokens.unload()
    gc.collect()
    return_free_memory()


def make_vectors(job: Vectorising, lease: Lease) -> str:
    """Make what is missing, keeping the job's counts up to date; returns the message of success."""
    row, spent, began = Vectorising.objects.filter(pk=job.pk), Spent(), time.monotonic()
    earlier = row.get()  # what workers did of this job before this one

    def note(done: int, total: int) -> None:
        row.update(
            done_count=done,
            total_count=total,
            space=space_of(job.model).name,
            made_count=earlier.made_count + spent.snippets,
            token_count=earlier.token_count + spent.input_tokens,
            worked_seconds=earlier.worked_seconds + time.monotonic() - began,
        )

    try:
        made = vectorise_missing(job.model, lease.check, note, spent)
    except EmbeddingError as error:
        raise JobFailed(str(error)) from error
    return f"{made:,} vectors made."


def rebuild_outdated_indexes() -> int:
    """Make the indexes anew whose terms an older version of Sitewise made, in all tenants; returns how many.

    And calibrate vectors that were made before there was such a thing: else the threshold would mean another thing.
    """
    count = 0
    for tenant in ready_tenants():
        try:
            with activated(tenant):
                count += len(index.rebuild_outdated())
                for model in MLModel.objects.all():
                    calibration.refresh(model, answering_space(model))
        except (StoreNotReady, DatabaseError) as error:  # the other tenants' indexes are rebuilt all the same
            logger.error(
                "The index of %s stays outdated: %s. Run: manage.py rebuild_index %s", tenant, error, tenant.slug
            )
    return count
