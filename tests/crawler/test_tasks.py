"""The worker's tasks, and the look for jobs that nobody works on."""

import base64
import json
from datetime import timedelta

import pytest
from django.utils import timezone

from crawler.crawl import new_import
from crawler.models import Import
from crawler.tasks import run_import, take_up_abandoned_jobs
from models_app.lease import Lease, TurnEnds
from models_app.models import MLModel, Retrieval, Vectorising
from tenants.models import Tenant
from tenants.store import activated, delete_store
from tests.fakes.website import Website, page

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sent(settings):
    """Return the function that reads the embedded broker's messages: task, tenant, row."""
    folder = settings.BROKER_DIR / "messages"
    for message in folder.glob("*.msg"):
        message.unlink()

    def read() -> list[tuple]:
        messages = [json.loads(path.read_text()) for path in sorted(folder.glob("*.msg"))]
        bodies = [json.loads(base64.b64decode(message["body"])) for message in messages]
        return [(message["headers"]["task"], *body[0]) for message, body in zip(messages, bodies, strict=True)]

    return read


def model_of(tenant: Tenant) -> MLModel:
    return MLModel.objects.create(slug="support", name="Support", retrieval=Retrieval.KEYWORD)


def test_the_task_does_the_import_of_its_row(acme):
    with Website({"/": page("Home", "/a"), "/a": page("A")}) as website:
        with activated(acme):
            job = new_import(model_of(acme), website.url("/"))
        run_import(acme.pk, job.pk)
        run_import(acme.pk, job.pk)
        assert website.asked("/a") == 1
    with activated(acme):
        assert Import.objects.get(pk=job.pk).state == Import.State.DONE


def test_open_jobs_of_all_tenants_are_sent_again(acme, globex, sent):
    with activated(acme):
        waiting = new_import(model_of(acme), "http://127.0.0.1:9/")
    with activated(globex):
        model = model_of(globex)
        interrupted = Import.take(new_import(model, "http://127.0.0.1:9/").pk)
        Import.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
        vectorising = Vectorising.objects.create(model=model)
    assert take_up_abandoned_jobs() == 3
    assert sorted(sent()) == sorted(
        [
            ("crawler.run_import", acme.pk, waiting.pk),
            ("crawler.run_import", globex.pk, interrupted.pk),
            ("models_app.vectorise", globex.pk, vectorising.pk),
        ]
    )


def test_jobs_that_somebody_works_on_and_ended_ones_are_left_alone(acme, sent):
    with activated(acme):
        running = Import.take(new_import(model_of(acme), "http://127.0.0.1:9/").pk)
        other = MLModel.objects.create(slug="other", name="Other")
        Import.take(new_import(other, "http://127.0.0.1:9/").pk).finish(Import.State.FAILED, "Down.")
        assert running.is_open
    assert take_up_abandoned_jobs() == 0
    assert sent() == []


def test_one_tenants_broken_store_keeps_no_other_tenant_waiting(acme, globex, sent):
    delete_store(acme)
    with activated(globex):
        job = new_import(model_of(globex), "http://127.0.0.1:9/")
    assert take_up_abandoned_jobs() == 1
    assert sent() == [("crawler.run_import", globex.pk, job.pk)]


def test_a_suspended_tenants_jobs_wait(acme, sent):
    with activated(acme):
        new_import(model_of(acme), "http://127.0.0.1:9/")
    Tenant.objects.filter(pk=acme.pk).update(is_suspended=True)
    assert take_up_abandoned_jobs() == 0


def test_a_job_that_was_never_begun_comes_before_those_that_take_turns(acme, globex, monkeypatch):
    sent = []  # the broker's files tell no order within a millisecond
    monkeypatch.setattr("crawler.tasks.send_message", lambda *message: sent.append(message))
    with activated(acme):
        begun = Import.take(new_import(model_of(acme), "http://127.0.0.1:9/").pk)
        begun.hand_back()
    with activated(globex):
        new = new_import(model_of(globex), "http://127.0.0.1:9/")
    assert take_up_abandoned_jobs() == 2
    assert sent == [(Import, globex.pk, new.pk), (Import, acme.pk, begun.pk)]


def test_jobs_are_told_whether_others_wait(acme, sent):
    with activated(acme):
        model = model_of(acme)
        waiting = new_import(model, "http://127.0.0.1:9/")
        take_up_abandoned_jobs()
        vectorising = Vectorising.take(Vectorising.objects.create(model=model).pk)
        with pytest.raises(TurnEnds):
            Lease(vectorising, turn_seconds=0).check()
        waiting.request_stop()
        take_up_abandoned_jobs()
        Lease(vectorising, turn_seconds=0).check()
