"""From a page to the link that leads to its sentence: imported, asked, and opened in a real browser."""

import pytest
from django.core.management import call_command
from playwright.sync_api import sync_playwright

from chat.answer import Asked, answer_now
from models_app.models import MLModel
from tenants.store import activated
from tests.conftest import needs
from tests.fakes.website import Website
from tests.test_browser import CHROMIUM, QUIET

pytestmark = pytest.mark.django_db(transaction=True)

FILLER = "".join(f"<p>Paragraph {number} speaks of nothing that anybody would ask about.</p>" for number in range(60))
TERMS = "<p>Prices hold for one month.</p>"
PAGE = f"""<title>Rental</title><body><aside>{TERMS}</aside><main><h1>Rental</h1>{FILLER}
<h2 id="deposit">Deposit</h2><p>For a cargo bike we keep a deposit of <b>250 EUR</b> until it is back.</p>
<h2 id="terms">Terms</h2>{TERMS}</main></body>"""


@pytest.fixture
def website():
    with Website({"/rental": PAGE}) as website:
        yield website


def address_told(acme, website, question: str) -> str:
    call_command("import_site", "acme/support", website.url("/rental"), "--retrieval", "keyword")
    with activated(acme):
        model = MLModel.objects.get()
        return answer_now(Asked(model, question)).sources[0].url


def test_a_source_leads_to_the_sentence_and_the_browser_goes_there(acme, website):
    needs(bool(CHROMIUM), "a browser (Debian's package chromium)")
    address = address_told(acme, website, "What is the deposit of a cargo bike?")
    assert address == (
        f"{website.url('/rental')}#:~:text=For%20a%20cargo%20bike%20we%20keep%20a%20deposit%20of%20250%20EUR%20until"
        "%20it%20is%20back."
    )
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET) as browser:
        page = browser.new_page()
        page.goto(address)
        page.wait_for_function("scrollY > 0")
        sentence = page.get_by_text("For a cargo bike")
        assert 0 <= sentence.bounding_box()["y"] < page.viewport_size["height"]


def test_a_sentence_that_stands_twice_leads_to_its_heading(acme, website):
    address = address_told(acme, website, "For how long do prices hold?")
    assert address == f"{website.url('/rental')}#terms"
