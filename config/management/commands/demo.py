"""Shows the whole product in a minute: crawls the sample site over HTTP and asks it eight questions, three ways.

The tenant `demo` is made anew by each run and touched by nothing else.
"""

import json
import threading
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from secrets import token_urlsafe
from textwrap import indent
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandError

from chat.answer import Asked, answer_now
from chat.context import Source
from crawler.models import Page
from models_app.model_files import ModelFetchError, ensure_model_files
from models_app.models import MLModel, Retrieval
from models_app.retrieval import retrieve
from tenants.installation import create_tenant, delete_tenant
from tenants.models import Tenant
from tenants.reporting import ReportingCommand
from tenants.store import activated

SLUG, MODEL, EMAIL = "demo", "harbour-lane", "demo@sitewise.example"
ANSWER_LINES = 16
SAMPLE_SITE = settings.BASE_DIR / "crawler" / "sample_site"


@dataclass(frozen=True)
class Question:
    """A question, the page that answers it, and words that the right snippet holds."""

    kind: str
    text: str
    page: str
    holds: str


QUESTIONS = (
    Question("fact", "How much is a full service?", "/workshop.html", "129 EUR"),
    Question("fact", "When are you open on Saturday?", "/contact.html", "10:00 to 15:00"),
    # None of the next three shares a content word with its page: tests/config/test_demo.py holds them to that.
    Question("paraphrase", "Somebody stole it overnight, what now?", "/faq.html", "protection plan"),
    Question("paraphrase", "I don't like it. How do I get my money again?", "/returns.html", "within 30 days"),
    Question("paraphrase", "Which size suits my little daughter?", "/bikes/wren.html", "four to seven"),
    Question("code", "E-17", "/bikes/otter-cargo.html", "magnet"),
    Question("code", "HB-2042", "/bikes/heron-city.html", "HB-2042"),
    Question("name", "Mirela Stoica", "/workshop.html", "Mirela Stoica"),
)


class Command(ReportingCommand):
    help = "Crawl the sample site, ask it eight questions under each retrieval, and leave a tenant to look at."

    def handle(self, **options):
        super().handle(**options)
        if self.wrong:
            raise CommandError(f"Hybrid retrieval had a wrong top hit for: {'; '.join(self.wrong)}")

    def report(self, **options):
        if not settings.SITEWISE_ALLOW_LOOPBACK:
            raise CommandError("The demo crawls a site on this machine: start it with `make demo`, which allows that.")
        try:
            ensure_model_files()
        except ModelFetchError as error:
            raise CommandError(str(error)) from error
        tenant, password = _make_tenant_anew()
        with activated(tenant):
            model = MLModel.objects.create(slug=MODEL, name="Harbour Lane Bicycles", retrieval=Retrieval.HYBRID)
        with _served_sample_site() as address:
            self.stderr.write(f"Crawling the sample site at {address} ...")
            imported = _import_site(address)
        with activated(tenant):
            questions = [_ask(model, question) for question in QUESTIONS]
        self.wrong = [wrong for asked in questions for wrong in wrong_of(asked)]
        return {
            "pages": imported["pages"],
            "snippets": imported["snippets"],
            "seconds": imported["seconds"],
            "questions": questions,
            "address": f"{settings.SITEWISE_URL}/{SLUG}/",
            "login": {"email": EMAIL, "password": password},
        }

    def as_text(self, report):
        done, questions = report["pages"].get(Page.State.DONE, 0), report["questions"]
        lines = [f"Imported {done} pages as {report['snippets']} snippets in {report['seconds']} seconds.", ""]
        lines += [f"{'Is the top hit the right one?':<50}  semantic  keyword   hybrid", *map(_as_row, questions)]
        lines += ["", "The answers under hybrid, quoted from the site as no LLM is configured:"]
        lines += map(_as_answer, questions)
        lines += ["", f"To open the dashboard: start it with `make serve`, go to {report['address']}"]
        lines += ["and log in as", f"    {report['login']['email']}", f"    {report['login']['password']}"]
        lines += ["The next `make demo` makes this tenant anew; nothing else touches it."]
        return "\n".join(lines)


def _make_tenant_anew() -> tuple[Tenant, str]:
    """Return the demo's fresh tenant and the password of its owner."""
    for old in Tenant.objects.filter(slug=SLUG):
        delete_tenant(old)
    users = get_user_model().objects
    users.filter(username=SLUG).delete()
    password = token_urlsafe(9)
    owner = users.create_user(username=SLUG, email=EMAIL, password=password)
    return create_tenant(SLUG, "Demo", owner=owner), password


def _import_site(address: str) -> dict:
    """Import the site into the demo's model, as the command does, and return its report."""
    printed = StringIO()
    call_command("import_site", f"{SLUG}/{MODEL}", address, json=True, stdout=printed)
    return json.loads(printed.getvalue())


def _ask(model: MLModel, question: Question) -> dict:
    """Return which retrievals have the right top hit, and the answer under the model's own."""
    answered = answer_now(Asked(model=model, question=question.text, channel="demo"))
    return {
        "kind": question.kind,
        "question": question.text,
        "is_top_hit_right": {mode: _is_top_hit_right(model, question, mode) for mode in Retrieval.values},
        "answer": answered.text,
        "sources": [asdict(source) for source in answered.sources],
        "is_answer_right": question.holds in answered.text and question.page in map(_path_of, answered.sources),
    }


def _is_top_hit_right(model: MLModel, question: Question, mode: str) -> bool:
    hits = retrieve(model, question.text, mode=mode, limit=1).hits
    return any(hit.uri.endswith(question.page) and question.holds in hit.text for hit in hits)


def wrong_of(asked: dict) -> list[str]:
    """Return what hybrid retrieval got wrong of a question."""
    wrong = [] if asked["is_top_hit_right"][Retrieval.HYBRID] else [asked["question"]]
    return wrong if asked["is_answer_right"] else [*wrong, f"{asked['question']} (the answer)"]


def _as_row(asked: dict) -> str:
    marks = "".join(f"{'right' if asked['is_top_hit_right'][mode] else '-':<10}" for mode in Retrieval.values)
    return f"{asked['question']:<50}  {marks} ({asked['kind']})"


def _as_answer(asked: dict) -> str:
    lines = asked["answer"].splitlines()
    shown = [*lines[:ANSWER_LINES], "..."] if len(lines) > ANSWER_LINES else lines
    sources = [f"Source: {source['title']} <{source['url']}>" for source in asked["sources"]]
    return "\n".join(["", asked["question"], indent("\n".join([*shown, *sources]), "    ")])


def _path_of(source: Source) -> str:
    return urlsplit(source.url).path


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@contextmanager
def _served_sample_site():
    """Serve the sample site over HTTP on a free port of this machine; yields its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_QuietHandler, directory=SAMPLE_SITE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
