"""The journey of a new customer, in a real browser against a real installation: from sign-up to History."""

import os
import re
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.config.test_serve import serving
from tests.conftest import PROJECT, needs, needs_local_embedder
from tests.worker import Installation

SCREENSHOTS = PROJECT / "screenshots"
SAMPLE_SITE = PROJECT / "crawler" / "sample_site"
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome") or ""
# Without these the browser looks for its maker's servers at every start.
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
PATIENCE_MS = 60_000
ABANDONED_REQUEST = ("htmx:afterRequest", "htmx:sendAbort", "htmx:sendError")
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves a folder as fast as its server is told, but for what lies under /broken/, where the site fails."""

    def do_GET(self):
        time.sleep(self.server.pause_seconds)
        if self.path.startswith("/broken/"):
            self.send_error(500)
        else:
            super().do_GET()

    def log_message(self, *arguments):
        pass


@dataclass(frozen=True)
class Website:
    """A website on loopback whose pages, and how long each takes, can be changed."""

    server: ThreadingHTTPServer
    folder: Path

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def take_its_time(self, seconds: float) -> None:
        self.server.pause_seconds = seconds

    def change(self, name: str, old: str, new: str) -> None:
        page = self.folder / name
        html = page.read_text()
        assert old in html
        page.write_text(html.replace(old, new))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    needs(bool(CHROMIUM), "a browser (Debian's package chromium)")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def website(tmp_path_factory) -> Iterator[Website]:
    """A copy of the sample site, served over HTTP."""
    folder = tmp_path_factory.mktemp("website") / "site"
    shutil.copytree(SAMPLE_SITE, folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=folder))
    server.pause_seconds = 0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Website(server, folder)
    server.shutdown()


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    """The address of a whole installation, web and worker, on an empty data folder."""
    needs_local_embedder()
    installation = Installation(tmp_path_factory.mktemp("installation"), SITEWISE_ALLOW_LOOPBACK="1")
    with serving(installation) as (_, printed):
        yield printed["address"].rstrip("/")


@pytest.fixture(scope="module")
def page(browser, address) -> Iterator[Page]:
    """A browser's page that fails the test on any error of a script or any refused resource."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if is_problem(message) else None)
    yield page
    context.close()
    assert problems == []


def is_problem(message: ConsoleMessage) -> bool:
    """Return whether the browser complains of more than a request that was on its way when its page was left."""
    return message.type == "error" and not message.text.startswith(ABANDONED_REQUEST)


def look(page: Page, name: str) -> None:
    """Keep pictures of the page, or of its dialog: desktop and phone, light and dark. None may scroll sideways."""
    is_whole = page.locator("dialog[open]").count() == 0
    SCREENSHOTS.mkdir(exist_ok=True)
    for size, (width, height) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=Path(SCREENSHOTS) / f"{name}-{size}-{scheme}.png", full_page=is_whole, caret="initial")
        too_wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert too_wide <= 0, f"{name} scrolls sideways by {too_wide} px on a {size}"
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 900})


def test_a_new_customer_gets_from_sign_up_to_the_first_answer(page, address, website):
    page.goto(f"{address}/")
    look(page, "home")
    page.get_by_role("link", name="Sign up").first.click()
    page.get_by_label("E-mail").or_(page.get_by_label("Email")).first.fill("olive@harbour.test")
    page.locator("input[name=password1]").fill("quiet-harbour-1998")
    page.locator("input[name=password2]").fill("quiet-harbour-1998")
    look(page, "sign-up")
    page.get_by_role("button", name="Sign up").click()

    page.locator("input[name=name]").fill("Harbour Lane")
    look(page, "workspace-new")
    page.get_by_role("button", name="Make workspace").click()
    expect(page).to_have_url(re.compile(r"/harbour-lane/"))
    look(page, "models-empty")

    page.get_by_role("button", name="New model").first.click()
    dialog = page.get_by_role("dialog")
    dialog.locator("input[name=name]").fill("Shop help")
    look(page, "model-new")
    dialog.get_by_role("button", name="Create model").click()
    expect(page).to_have_url(re.compile(r"/models/shop-help/"))
    look(page, "training-empty")

    if not page.get_by_role("dialog").is_visible():
        page.get_by_role("button", name=re.compile("^Import")).first.click()
    dialog = page.get_by_role("dialog")
    dialog.locator("input[name=address]").fill(website.address)
    look(page, "import-dialog")
    dialog.get_by_role("button", name="Start the import").click()
    expect(page.get_by_text(re.compile(r"\d+ pages imported")).first).to_be_visible()
    look(page, "import-finished")
    page.keyboard.press("Escape")


def test_training_data_shows_the_snippets_and_edits_one(page, address):
    page.goto(f"{address}/harbour-lane/models/shop-help/")
    expect(page.get_by_text("Full service").first).to_be_visible()
    look(page, "training-data")
    page.get_by_role("searchbox").first.fill("deposit")
    expect(page.get_by_text("Rental").first).to_be_visible()
    look(page, "training-search")


def test_the_test_tab_compares_three_retrievals_and_answers_with_a_source(page, address):
    page.goto(f"{address}/harbour-lane/models/shop-help/test/")
    question = page.locator("textarea[name=question]")
    question.fill("How much is")
    question.press("Shift+Enter")
    expect(question).to_have_value("How much is\n")
    expect(page.get_by_role("heading", name=re.compile("Keyword"))).to_have_count(0)
    question.fill("How much is a full service?")
    question.press("Enter")
    for retrieval in ("Semantic", "Keyword", "Hybrid"):
        expect(page.get_by_role("heading", name=re.compile(retrieval)).first).to_be_visible()
    page.get_by_role("button", name="Answer").click()
    answer = page.locator("#test-answer")
    expect(answer.get_by_text("129 EUR").first).to_be_visible()
    expect(answer.locator("a[href$='/workshop.html']").first).to_be_visible()
    look(page, "test-tab")


def test_history_shows_the_question_that_was_asked(page, address):
    page.goto(f"{address}/harbour-lane/models/shop-help/history/")
    question = page.get_by_role("link", name="How much is a full service?")
    expect(question).to_be_visible()
    look(page, "history")
    question.click()
    expect(page.get_by_text("129 EUR").first).to_be_visible()
    look(page, "turn")


def test_every_knob_is_in_the_behaviour_dialog_and_a_bad_value_is_refused_beside_its_field(page, address):
    page.goto(f"{address}/harbour-lane/models/shop-help/")
    page.get_by_role("button", name="Behaviour").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("[name=threshold]")).to_be_visible()
    expect(dialog.locator("[name=name]")).to_be_focused()
    look(page, "behaviour")
    dialog.locator("[name=threshold]").fill("7")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.locator("[name=threshold][aria-invalid=true]")).to_be_visible()
    expect(dialog.locator("[name=threshold]")).to_have_value("7")
    look(page, "behaviour-refused")


def test_members_and_keys_have_their_pages(page, address):
    page.goto(f"{address}/harbour-lane/members/")
    expect(page.locator("main").get_by_text("olive@harbour.test").first).to_be_visible()
    look(page, "members")
    page.goto(f"{address}/harbour-lane/keys/")
    look(page, "keys")


def test_an_import_is_watched_paused_resumed_and_tells_what_failed(page, address, website):
    website.change("index.html", "<ul>", "<ul><li><a href='/broken/a'>A</a> <a href='/broken/b'>B</a></li>")
    website.change("faq.html", "<main>", "<main><p><a href='/old-prices.html'>The old prices</a></p>")
    page.goto(f"{address}/harbour-lane/models/shop-help/")
    page.get_by_role("button", name="Import", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("More", exact=True).click()
    look(page, "import-more")
    website.take_its_time(2)
    dialog.get_by_role("button", name="Start the import").click()
    expect(dialog.get_by_text("left of this step")).to_be_visible()
    look(page, "import-running")
    dialog.get_by_role("button", name="Pause", exact=True).click()
    expect(dialog.get_by_role("button", name="Resume")).to_be_visible()
    expect(dialog.locator("[data-announce]")).to_contain_text("Paused")
    look(page, "import-paused")
    website.take_its_time(0)
    dialog.get_by_role("button", name="Resume").click()
    expect(dialog.locator("strong", has_text="Finished.")).to_be_visible()
    expect(dialog.get_by_role("button", name="Try these 3 pages again")).to_be_visible()
    look(page, "import-failures")

    dialog.get_by_role("link", name="Full report").click()
    expect(page.get_by_role("heading", name="Where the text is")).to_be_visible()
    look(page, "import-report")
    page.locator("#chip-state-failed").click()
    expect(page.locator("#page-table tbody tr")).to_have_count(3)
    expect(page.locator("#chip-state-failed")).to_be_focused()
    page.get_by_role("searchbox").fill("old-prices")
    expect(page.locator("#page-table tbody tr")).to_have_count(1)


def test_a_page_shows_what_of_it_was_selected_and_what_survived(page, address):
    page.goto(f"{address}/harbour-lane/models/shop-help/imports/")
    page.locator("tbody a").first.click()
    page.locator("#page-table").get_by_role("link", name="Workshop and prices").click()
    expect(page.get_by_role("heading", name="What survived")).to_be_visible()
    expect(page.get_by_text("No fact lost")).to_be_visible()
    frame = page.frame_locator("iframe.stored-page")
    page.locator("iframe.stored-page").scroll_into_view_if_needed()
    expect(frame.get_by_role("heading", name="Workshop")).to_be_visible()
    expect(frame.get_by_text("Selected: the page’s own text")).to_be_visible()
    look(page, "page-report")


def test_an_edit_whose_page_changes_asks_which_text_stays(page, address, website):
    page.goto(f"{address}/harbour-lane/models/shop-help/?q=Full+service")
    page.locator("#snippet-table").get_by_role("button", name="Edit “Workshop and prices").first.click()
    dialog = page.get_by_role("dialog")
    text = dialog.locator("textarea[name=completion]")
    text.fill(text.input_value() + "\n\nWe collect your bicycle for 15 EUR.")
    dialog.get_by_role("button", name="Save snippet").click()
    expect(dialog).to_have_count(0)

    website.change("workshop.html", "129 EUR", "139 EUR")
    page.get_by_role("button", name="Import", exact=True).click()
    dialog.get_by_role("link", name="Single pages").click()
    dialog.locator("textarea[name=addresses]").fill(f"{website.address}/workshop.html")
    look(page, "import-pages")
    dialog.get_by_role("button", name="Start the import").click()
    dialog.get_by_role("link", name="Decide which text stays").click()
    page.locator("#snippet-table").get_by_role("button", name=re.compile("^Conflict")).first.click()
    expect(dialog).to_contain_text("139")
    look(page, "conflict")
    dialog.get_by_role("button", name="Keep mine").click()
    expect(dialog).to_have_count(0)


def test_another_max_context_tokens_splits_the_stored_pages_anew(page, address):
    page.goto(f"{address}/harbour-lane/models/shop-help/")
    page.get_by_role("button", name="Behaviour").first.click()
    dialog = page.get_by_role("dialog")
    dialog.locator("[name=max_context_tokens]").fill("400")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("heading", name="The stored pages, split anew")).to_be_visible()
    expect(dialog.locator("strong", has_text="Finished.")).to_be_visible()
    look(page, "split-anew")


def test_the_ways_to_import_are_reached_by_keyboard(page, address):
    page.goto(f"{address}/harbour-lane/models/shop-help/")
    page.get_by_role("button", name="Import", exact=True).press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("input[name=address]")).to_be_focused()
    dialog.get_by_role("link", name="Single pages").press("Enter")
    expect(dialog.locator("textarea[name=addresses]")).to_be_focused()
    dialog.get_by_role("link", name="Files").press("Enter")
    expect(dialog.locator("input[type=file]")).to_be_focused()
    look(page, "import-files")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="Import", exact=True)).to_be_focused()


def test_a_file_of_rows_is_looked_into_and_imported_by_the_columns_that_are_chosen(page, address):
    page.goto(f"{address}/harbour-lane/models/shop-help/")
    page.get_by_role("button", name="Import", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("link", name="Files").click()
    rows = "".join(f"{number},Is voucher {number} valid?,Voucher {number} is valid until May.\n" for number in range(3))
    csv = {"name": "vouchers.csv", "mimeType": "text/csv", "buffer": f"no,asked,told\n{rows}".encode()}
    dialog.locator("input[type=file]").set_input_files(csv)
    dialog.get_by_role("button", name="Look into them").click()
    dialog.get_by_label("Column of titles").select_option("asked")
    dialog.get_by_label("Column of texts").select_option("told")
    expect(dialog.get_by_text("Voucher 2 is valid until May.").last).to_be_visible()
    look(page, "import-file-columns")
    dialog.get_by_role("button", name="Start the import").click()
    expect(dialog.locator(".notice--good")).to_contain_text("1 file imported with 3 rows")
    look(page, "import-file-finished")


def test_ticked_snippets_are_counted_and_deleted(page, address):
    page.goto(f"{address}/harbour-lane/models/shop-help/?q=voucher")
    table, dialog = page.locator("#snippet-table"), page.get_by_role("dialog")
    expect(table.locator(".list__row")).to_have_count(3)
    for number in (0, 2):
        table.get_by_role("checkbox", name=f"Select “Is voucher {number} valid?”").check()
    expect(table.get_by_text("2 selected")).to_be_visible()
    look(page, "training-ticked")
    table.get_by_role("button", name="Delete…").click()
    expect(dialog.get_by_role("heading", name="Delete 2 snippets?")).to_be_visible()
    look(page, "training-delete")
    dialog.get_by_role("button", name="Delete 2 snippets").click()
    expect(dialog).to_have_count(0)
    expect(table.locator(".list__row")).to_have_count(1)
    expect(table.get_by_text("Is voucher 1 valid?")).to_be_visible()
