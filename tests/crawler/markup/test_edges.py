"""What the page itself shows to be menus, lists of other pages and controls is moved to the site, never dropped."""

import pytest

from crawler.markup.convert import landmark_markdown, plain_words, to_markdown
from crawler.markup.select import select_content

URL = "https://example.com/shop/lamps"
TEXT = "<h1>Lamps</h1><p>Our lamps burn nine watts and last for nine years, whatever the weather.</p>"
MENU = "<div><a href=/a>Start</a> <a href=/b>Our shop</a> <a href=/c>All prices</a></div>"


def select(html):
    return select_content(html, URL)


def moved(html):
    return " ".join(map(plain_words, landmark_markdown(select(html))))


def own(html):
    return plain_words(to_markdown(select(html)))


class TestListsOfLinks:
    def test_menus_without_a_role_around_the_text_are_the_sites(self):
        html = f"<body>{MENU}<div>{TEXT}<p>Call us.</p></div>{MENU.replace('Start', 'Imprint')}</body>"
        assert own(html).startswith("Lamps Our lamps") and own(html).endswith("Call us.")
        assert moved(html) == "Start Our shop All prices Imprint Our shop All prices"

    def test_a_level_further_in_is_looked_at_too(self):
        html = f"<body><div><div>{MENU}</div><div><div>{TEXT}</div>{MENU}</div></div></body>"
        assert own(html) == "Lamps Our lamps burn nine watts and last for nine years, whatever the weather."

    def test_a_link_in_a_sentence_stays_in_it(self):
        html = f"<body><div>Come and see <a href=/shop>our shop</a> today.<div>{TEXT}</div></div></body>"
        assert own(html).startswith("Come and see our shop today.")

    @pytest.mark.parametrize("address", ["tel:+4930123456", "mailto:us@example.com", "/manual.pdf", "/a/Plan.XLSX?v=2"])
    def test_a_number_to_call_or_a_file_to_load_is_what_the_page_may_be_about(self, address):
        html = f"<body><div>{TEXT}</div><div><a href='{address}'>Get it here</a></div></body>"
        assert "Get it here" in own(html)

    def test_a_list_of_links_before_the_text_of_main_stays(self):
        assert own(f"<main>{MENU}<div>{TEXT * 5}</div></main>").startswith("Start")

    def test_a_short_list_of_links_behind_a_long_text_of_main_is_the_sites(self):
        html = f"<main><div>{TEXT * 8}</div>{MENU}</main>"
        assert "Start" not in own(html) and moved(html) == "Start Our shop All prices"

    def test_a_listing_keeps_its_list(self):
        rows = "".join(f"<li><a href=/{number}>Lamp number {number} of this year</a></li>" for number in range(40))
        assert "number 39" in own(f"<main><h1>Lamps</h1><p>All of them.</p><ul>{rows}</ul></main>")
        assert "number 39" in own(f"<body><h1>Lamps</h1><p>All of them.</p><div><ul>{rows}</ul></div></body>")

    def test_a_list_with_the_pages_headline_stays(self):
        html = f"<body><div><h1><a href=/>Lamps of the north</a></h1></div><div>{TEXT}</div></body>"
        assert own(html).startswith("Lamps of the north")


class TestControls:
    @pytest.mark.parametrize(
        "control",
        [
            "<button>Copy</button>",
            "<div role=button tabindex=0>Copy</div>",
            "<label for=q>Copy</label><input id=q>",
            "<label><input type=checkbox name=a value=1>Copy</label>",
            "<form><label>Copy</label></form>",
        ],
    )
    def test_what_only_works_the_page_is_the_sites(self, control):
        html = f"<main>{TEXT}{control}</main>"
        assert "Copy" not in own(html)
        assert moved(html) == "Copy"

    @pytest.mark.parametrize(
        "title",
        [
            "<h2><button>How long?</button></h2><p>A day.</p>",
            "<button aria-expanded=false>How long?</button><p>A day.</p>",
            "<div role=tablist><button>How long?</button></div><p>A day.</p>",
            "<input type=checkbox id=a><label for=a>How long?</label><p>A day.</p>",
            "<input type=radio name=tab id=a><label for=a>How long?</label><p>A day.</p>",
            "<button><h3>How long?</h3><p>A day.</p></button>",
            f"<button>How long? {'It takes a day. ' * 5}</button>",
        ],
    )
    def test_what_titles_or_holds_text_is_text(self, title):
        assert "How long?" in own(f"<main>{TEXT}{title}</main>")

    def test_a_forms_own_buttons_are_in_neither(self):
        html = f"<main>{TEXT}<form>Your name <input><button>Send</button></form></main>"
        assert "Your name" in own(html)
        assert "Send" not in own(html) + moved(html)

    def test_links_that_skip_what_comes_first_are_the_sites(self):
        html = f"<body><a href='#main'>Skip to content</a>{TEXT}<p>To <a href='#top'>the top</a></p>"
        assert own(html).startswith("Lamps") and own(html).endswith("To the top")
        assert moved(html) == "Skip to content"

    def test_controls_that_are_all_there_is_stay(self):
        assert own("<main><button>One</button><button>Two</button></main>") == "One Two"


class TestDialogs:
    @pytest.mark.parametrize(
        "opening",
        [
            "dialog",
            "div role=dialog hidden",
            "div role=alertdialog aria-hidden=true",
            "div role=dialog aria-modal=true",
            "div role=dialog style='display: none'",
        ],
    )
    def test_a_closed_dialog_is_the_sites(self, opening):
        html = f"<main>{TEXT}<{opening}><p>Join our club!</p></{opening.split()[0]}></main>"
        assert "Join" not in own(html) and moved(html) == "Join our club!"

    @pytest.mark.parametrize("opening", ["dialog open", "div role=dialog", "div role=tabpanel hidden"])
    def test_one_that_stands_open_is_the_pages(self, opening):
        assert "Join" in own(f"<main>{TEXT}<{opening}><p>Join our club!</p></{opening.split()[0]}></main>")


class TestAround:
    def test_what_stands_outside_of_main_is_kept_for_the_site_in_order(self):
        html = "<body>Before <b>all</b><nav>Menu</nav><div>Hints<main>Own text</main> behind</div><footer>End</footer>"
        content = select(html)
        assert to_markdown(content) == "Own text"
        assert landmark_markdown(content) == ("Before **all**", "Menu", "Hints", "behind", "End")

    def test_an_aside_of_main_that_is_mostly_links_is_the_sites_and_a_note_is_not(self):
        note = "<aside>Mind the <a href=/x>gap</a>, it is wide.</aside>"
        links = "<aside>See <a href=/a>other lamps</a></aside>"
        content = select(f"<main>{TEXT}{note}{links}</main>")
        assert "Mind the" in to_markdown(content)
        assert landmark_markdown(content) == ("See [other lamps](https://example.com/a)",)

    def test_the_footer_of_a_quotation_is_its_source(self):
        assert "Ann" in own(f"<main>{TEXT}<blockquote>Good!<footer><a href=/ann>Ann</a></footer></blockquote></main>")
