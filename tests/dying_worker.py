"""Does imports in processes that kill themselves (SIGKILL) at a given step, one after another, until none dies.

python -m tests.dying_worker ADDRESS... in an installation's environment, whose tenant is acme. Each kind of import is
done for one model whose workers die in each phase, and for one where nobody disturbs them; what both hold then is
printed as JSON.
"""

import json
import os
import signal
import sys

import django

# Where the workers die: the phase, and the number of the look at the lease there, with which each step begins.
DEATHS = {
    "pages": (("reading", 2), ("reading", 6), ("splitting", 3), ("splitting", 9), ("embedding", 1)),
    "stored": (("reading", 1), ("splitting", 2), ("splitting", 8), ("embedding", 1)),
    "files": (("reading", 2), ("reading", 5), ("splitting", 2), ("embedding", 1), ("embedding", 2)),
}
ROWS = "question,answer\n" + "\n".join(f"Question {number}?,Answer {number}." for number in range(600))
TEXTS = {f"text{number}.txt": "\n\n".join(f"Rule {number}.{part}. " * 60 for part in range(6)) for number in range(2)}


def main(addresses: list[str]) -> None:
    from tenants.models import Tenant

    tenant = Tenant.objects.get(slug="acme")
    json.dump([holds_after_all_kinds(tenant, slug, addresses) for slug in ("calm", "disturbed")], sys.stdout)


def holds_after_all_kinds(tenant, slug: str, addresses: list[str]) -> list:
    """Import all kinds into a new model of this name, which tells whether workers die; returns what it holds then."""
    from models_app.models import MLModel
    from tenants.store import activated

    held = []
    with activated(tenant):
        model = MLModel.objects.create(slug=slug, name=slug)
        for kind, deaths in DEATHS.items():
            pk = start(model, kind, addresses)
            for death in deaths if slug == "disturbed" else ():
                assert work(tenant.pk, pk, death) == -signal.SIGKILL, f"{kind}: the import ended before {death}"
            assert work(tenant.pk, pk) == 0
            held.append(what_stands(model, pk))
    return held


def start(model, kind: str, addresses: list[str]) -> int:
    from crawler.crawl import new_import, split_options
    from crawler.models import Upload

    if kind == "stored":
        model.max_context_tokens //= 2
        model.save()
        return new_import(model, **split_options(model)).pk
    if kind == "pages":
        return new_import(model, kind=kind, addresses=addresses).pk
    job = new_import(model, "Files", kind=kind, max_pages=len(TEXTS) + 1)
    for name, text in TEXTS.items():
        Upload.objects.create(model=model, job=job, name=name, kind="text", body=text.encode())
    Upload.objects.create(model=model, job=job, name="faq.csv", kind="csv", body=ROWS.encode())
    return job.pk


def work(tenant_id: int, pk: int, death: tuple[str, int] | None = None) -> int:
    """Let a process of its own work on the import; returns how it ended: 0, or the signal that killed it."""
    from django.db import connections

    from crawler.crawl import import_site
    from crawler.models import Import
    from models_app.jobs import perform

    Import.objects.filter(pk=pk).update(leased_until=None)  # a dead worker's lease is not waited for
    connections.close_all()  # no connection may be used on both sides of a fork
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        if death:
            die_at(*death)
        ended = perform(Import, tenant_id, pk, import_site)
        os._exit(ended.state != Import.State.DONE)
    finally:
        os._exit(2)


def die_at(phase: str, steps: int) -> None:
    """Kill this process at the step of this number in the phase."""
    from models_app.lease import Lease

    look, left = Lease.check, steps

    def check(lease: Lease) -> None:
        nonlocal left
        left -= lease._job.phase == phase
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        look(lease)

    Lease.check = check


def what_stands(model, pk: int) -> dict:
    from crawler.models import Page
    from models_app import index

    pages = Page.objects.filter(job=pk).order_by("url")
    snippets = model.snippets.order_by("uri", "source", "position", "prompt")
    return {
        "pages": list(pages.values_list("url", "final_url", "state", "reason", "snippet_count", "report__split")),
        "snippets": list(
            snippets.values_list("uri", "source", "position", "prompt", "completion", "token_count", "embedded_in")
        ),
        "problems": [str(problem) for problem in index.check_model(model.pk)],
    }


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    main(sys.argv[1:])
