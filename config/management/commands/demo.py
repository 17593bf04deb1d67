"""Shows the whole product in a minute: crawls the sample site over HTTP and asks it eight questions, three ways.

The tenant `demo` is made anew by each run and touched by nothing else.
"""

import threading
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from secrets import token_urlsafe
from textwrap import indent
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from chat.answer import Answered, Asked, answer_now
from chat.context import Source
from models_app.model_files import ModelFetchError, ensure_model_files
from models_app.models import MLModel, Retrieval
from models_app.retrieval import retrieve
from tenants.installation import ControlDatabaseBroken, create_tenant, delete_tenant, prepare
from tenants.models import Tenant
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


class Command(BaseCommand):
    help = "Crawl the sample site, ask it eight questions under each retrieval, and leave a tenant to look at."

    def handle(self, **options):
        if not settings.SITEWISE_ALLOW_LOOPBACK:
            raise CommandError("The demo crawls a site on this machine: start it with `make demo`, which allows that.")
        try:
            prepare()
            ensure_model_files()
        except (ControlDatabaseBroken, ModelFetchError, OSError) as error:
            raise CommandError(str(error)) from error
        tenant, password = _make_tenant_anew()
        with activated(tenant):
            model = MLModel.objects.create(slug=MODEL, name="Harbour Lane Bicycles", retrieval=Retrieval.HYBRID)
        with _served_sample_site() as address:
            self.stdout.write(f"Crawling the sample site at {address} ...")
            call_command("import_site", f"{SLUG}/{MODEL}", address, stdout=self.stdout, stderr=self.stderr)
        with activated(tenant):
            wrong = self._ask_all(model)
        self._tell_how_to_go_on(password)
        if wrong:
            raise CommandError(f"Hybrid retrieval had a wrong top hit for: {'; '.join(wrong)}")

    def _ask_all(self, model: MLModel) -> list[str]:
        """Print the table and the answers; returns the questions whose top hit under hybrid is wrong."""
        self.stdout.write(f"\n{'Is the top hit the right one?':<50}  semantic  keyword   hybrid")
        wrong = []
        for question in QUESTIONS:
            right = {mode: _is_top_hit_right(model, question, mode) for mode in Retrieval.values}
            marks = "".join(f"{'right' if right[mode] else '-':<10}" for mode in Retrieval.values)
            self.stdout.write(f"{question.text:<50}  {marks} ({question.kind})")
            if not right[Retrieval.HYBRID]:
                wrong.append(question.text)
        self.stdout.write("\nThe answers under hybrid, quoted from the site as no LLM is configured:")
        for question in QUESTIONS:
            answered = answer_now(Asked(model=model, question=question.text, channel="demo"))
            self._print_answer(question, answered)
            if question.holds not in answered.text or question.page not in {_path_of(one) for one in answered.sources}:
                wrong.append(f"{question.text} (the answer)")
        return wrong

    def _print_answer(self, question: Question, answered: Answered) -> None:
        self.stdout.write(f"\n{question.text}")
        lines = answered.text.splitlines()
        shown = [*lines[:ANSWER_LINES], "..."] if len(lines) > ANSWER_LINES else lines
        self.stdout.write(indent("\n".join(shown), "    "))
        for source in answered.sources:
            self.stdout.write(f"    Source: {source.title} <{source.url}>")

    def _tell_how_to_go_on(self, password: str) -> None:
        self.stdout.write(
            f"\nTo open the dashboard: start it with `make serve`, go to {settings.SITEWISE_URL}/{SLUG}/\n"
            f"and log in as\n    {EMAIL}\n    {password}\n"
            "The next `make demo` makes this tenant anew; nothing else touches it."
        )


def _make_tenant_anew() -> tuple[Tenant, str]:
    """Return the demo's fresh tenant and the password of its owner."""
    for old in Tenant.objects.filter(slug=SLUG):
        delete_tenant(old)
    users = get_user_model().objects
    users.filter(username=SLUG).delete()
    password = token_urlsafe(9)
    owner = users.create_user(username=SLUG, email=EMAIL, password=password)
    return create_tenant(SLUG, "Demo", owner=owner), password


def _is_top_hit_right(model: MLModel, question: Question, mode: str) -> bool:
    hits = retrieve(model, question.text, mode=mode, limit=1).hits
    return any(hit.uri.endswith(question.page) and question.holds in hit.text for hit in hits)


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
