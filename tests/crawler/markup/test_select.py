"""Which part of a page is its own, what belongs to the site, and what the page says about itself."""

import pytest

from crawler.markup.convert import landmark_markdown, to_markdown
from crawler.markup.select import select_content

URL = "https://example.com/shop/lamps"


def select(html):
    return select_content(html, URL)


def selected(html):
    return to_markdown(select(html))


def test_main_is_selected_before_all_else():
    content = select("<body><p>Cookies!</p><article>Teaser</article><main><h1>Lamps</h1>Nine watts</main></body>")
    assert to_markdown(content) == "# Lamps\n\nNine watts"
    assert content.selected_by == "main"


def test_several_mains_are_all_taken_in_their_order():
    html = "<main>One</main><div>between</div><div role='main'>Two<main>Three</main></div>"
    assert selected(html) == "One\n\nTwo\n\nThree"


def test_without_main_every_outermost_article_is_taken():
    html = "<article>First post<article>its comment</article></article><p>x</p><article>Second post</article>"
    content = select(html)
    assert to_markdown(content) == "First post\n\nits comment\n\nSecond post"
    assert content.selected_by == "article"


def test_an_article_in_an_aside_of_the_site_is_no_content():
    content = select("<aside><article>Advertised</article></aside><div>Our lamps last for nine years.</div>")
    assert to_markdown(content) == "Our lamps last for nine years."
    assert content.selected_by == "body"


def test_navigation_is_a_landmark_anywhere():
    content = select("<main><nav>Chapters</nav><p>Text of the page</p><div role=navigation>Next</div></main>")
    assert to_markdown(content) == "Text of the page"
    assert landmark_markdown(content) == ("Chapters", "Next")


def test_breadcrumbs_are_navigation_by_their_label_or_their_type():
    html = (
        "<main><ol aria-label='Breadcrumb'><li>Home</li></ol>"
        "<ul itemtype='https://schema.org/BreadcrumbList'><li>Shop</li></ul><p>Lamps</p></main>"
    )
    assert selected(html) == "Lamps"


@pytest.mark.parametrize("tag", ["header", "footer", "aside"])
def test_header_footer_and_aside_are_landmarks_outside_of_main_and_article_only(tag):
    content = select(f"<{tag}>site</{tag}><main>text <{tag}>own</{tag}></main>")
    assert to_markdown(content) == "text\n\nown"
    assert landmark_markdown(content) == ("site",)


def test_the_header_of_a_section_is_content():
    assert (
        selected("<section><header><h2>Fees</h2></header>Five euros a month</section>")
        == "## Fees\n\nFive euros a month"
    )


def test_a_role_says_more_than_a_name():
    content = select("<div role=banner>Acme</div><nav role=presentation>Text in an odd place, and enough of it</nav>")
    assert to_markdown(content) == "Text in an odd place, and enough of it"
    assert landmark_markdown(content) == ("Acme",)


def test_a_header_left_open_around_main_is_no_landmark():
    assert selected("<header>Acme<main>Nine watts</main>") == "Nine watts"


def test_a_header_left_open_around_everything_does_not_hide_the_page():
    text = "We repair or replace any part that fails within two years of delivery."
    content = select(f"<header><h1>Warranty</h1><p>{text}</p>")
    assert to_markdown(content) == f"# Warranty\n\n{text}"
    assert content.warnings


def test_menus_around_an_empty_app_shell_do_not_become_its_content():
    content = select("<header>" + "<a href=/x>Menu entry</a> " * 20 + "</header><main id=app></main>")
    assert to_markdown(content) == ""


def test_navigation_that_is_all_of_main_is_content():
    entries = "".join(f"<li><a href=/{name}>{name}</a></li>" for name in ("prices", "contact", "imprint", "lamps"))
    content = select(f"<nav><a href=/>Home</a></nav><main><h1>Map</h1><nav><ul>{entries}{entries}</ul></nav></main>")
    assert "[imprint](https://example.com/imprint)" in to_markdown(content)
    assert landmark_markdown(content) == ("[Home](https://example.com/)",)


def test_a_nearly_empty_main_widens_to_the_page_with_a_warning():
    content = select("<main>Loading</main><div>" + "The lamp uses nine watts at full power. " * 20 + "</div>")
    assert "nine watts" in to_markdown(content)
    assert content.selected_by == "body"
    assert "main holds 7 of" in content.warnings[0]


def test_a_short_main_on_a_page_with_large_menus_stays_alone():
    menu = "<nav>" + "<a href=/x>Menu entry</a>" * 99 + "</nav>"
    content = select(f"{menu}<main>Thank you for your order.</main>{menu}")
    assert to_markdown(content) == "Thank you for your order."
    assert content.warnings == ()


def test_noscript_is_kept_where_it_is_all_the_text_there_is():
    posts = "<p>How do I descale the machine? With citric acid, once a month.</p>" * 3
    assert "citric acid" in selected(f"<div id=app></div><noscript>{posts}</noscript>")
    assert "citric acid" not in selected(
        f"<main>{posts.replace('citric acid', 'vinegar')}</main><noscript>{posts}</noscript>"
    )


def test_a_template_is_no_text_but_a_shadow_root_is():
    assert selected("<main>Shown<template>idle</template></main>") == "Shown"
    assert "inside" in selected("<x-card><template shadowrootmode=open><p>inside</p></template></x-card>")


def test_text_after_the_end_of_the_document_is_kept():
    assert selected("<html><body><p>Text</p></body></html><p>tail</p>") == "Text\n\ntail"


def test_links_are_absolute_without_fragment_each_once_and_of_the_whole_page():
    content = select(
        "<head><base href='/docs/'><link rel=next href=two><link rel=canonical href=/canonical></head>"
        "<nav><a href='menu'>m</a></nav><main><a href='a#x'>1</a><a href='a#y'>2</a><a href='https://b.test/c'>3</a>"
        "<a href='mailto:x@y.z'>4</a><a href='javascript:go()'>5</a><a href='http://['>6</a>"
        "<a href='ad' rel='sponsored nofollow'>7</a><map><area href='//c.test/d'></map>"
        "<iframe src=frame></iframe></main>"
    )
    assert set(content.links) == {
        "https://example.com/docs/menu",
        "https://example.com/docs/a",
        "https://b.test/c",
        "https://c.test/d",
        "https://example.com/docs/two",
        "https://example.com/docs/frame",
    }
    assert content.canonical == "https://example.com/canonical"


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title> Lamps \n &amp; more </title><h1>x</h1>", "Lamps & more"),
        ("<meta property='og:title' content='Shared'><h1>x</h1>", "Shared"),
        ("<title> </title><h1></h1><h1>First <b>heading</b></h1>", "First heading"),
        ("<svg><title>Icon</title></svg><p>x</p>", "/shop/lamps"),
    ],
)
def test_the_title_is_the_best_name_the_page_has(html, title):
    assert select(html).title == title


def test_language_and_the_robots_rules_are_read():
    content = select("<html lang='de-AT'><meta name=ROBOTS content='NoIndex, follow'><p>x")
    assert (content.language, content.is_noindex, content.is_nofollow) == ("de-AT", True, False)
    assert select("<meta name=robots content=none>").is_nofollow


@pytest.mark.parametrize("html", ["", " ", "<html>", "<!-- only a comment -->", "\0", "<main></main>"])
def test_an_empty_page_gives_an_empty_selection(html):
    content = select(html)
    assert to_markdown(content) == ""
    assert landmark_markdown(content) == ()


def test_ten_thousand_levels_of_any_element_are_read():
    for name in ("div", "main", "article", "header", "nav", "section", "noscript"):
        content = select(f"<{name}>" * 10_000 + "deep" + f"</{name}>" * 10_000)
        assert "deep" in to_markdown(content) + " ".join(landmark_markdown(content)), name


def test_case_c06_no_class_name_makes_text_vanish(case):
    markdown = selected(case("C06")["input"]["html"])
    assert all(part in markdown for part in case("C06")["expected"]["contains"])


def test_case_c04_text_without_paragraphs_is_content(case):
    expected = case("C04")["expected"]
    markdown = selected(case("C04")["input"]["html"])
    assert all(part in markdown for part in expected["contains"])
    assert not any(part in markdown for part in expected["not_contains"])


def test_case_c07_hidden_panels_are_kept(case):
    assert selected(case("C07")["input"]["html"]) == case("C07")["expected"]["equals"]


def test_case_c08_nothing_is_lost_behind_a_nul():
    assert (
        selected("<main><p>Opening hours\0 are 9-17</p><p>Closed Sunday</p></main>")
        == "Opening hours are 9-17\n\nClosed Sunday"
    )


def test_case_c10_a_teaser_is_not_taken_for_the_page(case):
    content = select(case("C10")["input"]["html"])
    assert "Warranty terms" in to_markdown(content)
    assert "article holds 13 of 162 visible characters" in content.warnings[0]


LOGIN = "<form><label>User <input name=u></label> Password <input type=password name=p><button>Log in</button></form>"
PROSE = "<p>The blue widget costs nine euros, leaves our shop within two days and may be returned for a month.</p>"


@pytest.mark.parametrize(
    "body",
    [
        LOGIN,
        f"<nav><a href=/>Home</a> {'About us and all that we do ' * 9}</nav><h1>Staff</h1><p>Please log in.</p>{LOGIN}",
        f"<main><h1>Staff</h1>{LOGIN}<a href=/lost>Have you forgotten the password that we once sent you?</a></main>",
        "<div>User <input> Password <INPUT TYPE=Password> <button>Log in</button></div>",
        f"<form id=aspnet><header>{PROSE * 9}</header>User <input> Password <input type=password></form>",
    ],
)
def test_a_page_that_is_hardly_more_than_a_login_form_is_a_wall(body):
    assert select(f"<title>Log in</title><body>{body}").is_login_wall


@pytest.mark.parametrize(
    "body",
    [
        f"{PROSE}{LOGIN}",
        f"<header>{LOGIN}</header><p>Closed today.</p>",
        f"<main>Closed today.</main>{LOGIN}",
        f"<p>Closed today.</p><div hidden>{LOGIN}</div><dialog>{LOGIN}</dialog>",
        f"<p>Closed today.</p><div style='display: none'>{LOGIN}</div><div aria-hidden=true>{LOGIN}</div>",
        f"<form id=aspnet>{PROSE * 4}User <input> Password <input type=password></form>",
        "<p>Closed today.</p><form><input type=search></form>",
    ],
)
def test_a_login_box_beside_what_the_page_says_is_no_wall(body):
    assert not select(f"<body>{body}").is_login_wall


SCRIPT = "<script src=/app.js></script>"


@pytest.mark.parametrize(
    "html",
    [
        f"<title>Acme</title><div id=root></div>{SCRIPT}",
        f"<noscript>You need to enable JavaScript to run this app.</noscript><div id=app>Loading…</div>{SCRIPT}",
        f"<header><nav><a href=/a>Products</a> <a href=/b>Prices and all else</a></nav></header><main></main>{SCRIPT}",
    ],
)
def test_an_empty_shell_needs_scripts(html):
    assert select(html).needs_scripts
    assert select(html).is_shell


@pytest.mark.parametrize("words", ["Call 0800 777 4242", "<main><h1>Fee</h1>12 EUR</main>", "<p>Geschlossen</p>"])
def test_a_page_with_a_few_words_of_its_own_is_no_shell(words):
    content = select(f"<title>Acme</title><nav><a href=/>Home</a></nav>{words}{SCRIPT}")
    assert content.needs_scripts
    assert not content.is_shell


@pytest.mark.parametrize(
    "html",
    [
        "<title>Acme</title><div id=root></div>",
        f"<main>We open at nine, and close at six on Sundays.</main>{SCRIPT}",
        f"<nav><a href=/>Home</a></nav><div>We open at nine, and close at six on Sundays.</div>{SCRIPT}",
        f"<frameset><frame src=/a></frameset>{SCRIPT}",
    ],
)
def test_a_page_that_says_something_needs_none(html):
    assert not select(html).needs_scripts
