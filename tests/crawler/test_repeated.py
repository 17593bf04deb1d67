"""What a site repeats around its pages is kept once, and nothing that a reader sees is lost."""

from crawler.markup.convert import landmark_markdown, to_markdown
from crawler.markup.select import select_content
from crawler.repeated import MAX_COUNTED, PageTally, PageText, RepeatedBlocks, blocks_of, digest_of, survey_pages
from crawler.site_blocks import SiteBlock, join_blocks, site_blocks
from tests.conftest import PROJECT


def text(url: str, markdown: str, *landmarks: str, has_main: bool = False) -> PageText:
    return PageText(url, f"Title of {url}", markdown, landmarks, has_main)


def find_repeated_blocks(pages: list[PageText]) -> RepeatedBlocks:
    return survey_pages(pages).repeated


def blocks_around(pages: list[PageText]) -> list[SiteBlock]:
    return list(site_blocks(pages, survey_pages(pages)))


def kept(pages: list[PageText]) -> list[str]:
    return [block.markdown for block in blocks_around(pages)]


FRAMED = [text(f"/{name}", f"We use cookies.\n\n# {name}\n\nAbout {name}.\n\nMill Lane 7") for name in "abcd"]


class TestWhereThereIsNoMainPart:
    def test_what_most_pages_say_is_taken_out_of_each_and_kept_once(self):
        repeated = find_repeated_blocks(FRAMED)
        assert [repeated.without(page.markdown) for page in FRAMED[:2]] == ["# a\n\nAbout a.", "# b\n\nAbout b."]
        assert kept(FRAMED) == ["We use cookies.", "Mill Lane 7"]

    def test_what_fewer_than_three_pages_say_stays(self):
        pages = FRAMED[:2]
        assert find_repeated_blocks(pages).without(pages[0].markdown) == pages[0].markdown
        assert kept(pages) == []

    def test_what_less_than_half_of_the_pages_say_stays(self):
        pages = [text(f"/{number}", f"Own {number}\n\n{'Includes VAT' if number < 4 else ''}") for number in range(10)]
        assert "Includes VAT" in find_repeated_blocks(pages).without(pages[0].markdown)

    def test_the_same_words_are_the_same_block_whatever_is_linked_or_bold_in_them(self):
        menu = ["[Home](/) [Shop](/shop)", "**Home** [Shop](/shop)", '[Home](/ "Start") Shop']
        pages = [text(f"/{number}", f"{block}\n\nOwn {number}") for number, block in enumerate(menu)]
        assert find_repeated_blocks(pages).without(pages[1].markdown) == "Own 1"

    def test_a_repeated_heading_stays_above_what_is_the_pages_own(self):
        pages = [
            text(f"/{n}", f"## Examples\n\nOwn {n}\n\n## Newsletter\n\nSign up!\n\n### Why\n\nNews.") for n in range(3)
        ]
        assert find_repeated_blocks(pages).without(pages[0].markdown) == "## Examples\n\nOwn 0"

    def test_a_line_across_the_page_says_nothing_and_stays(self):
        pages = [text(f"/{number}", f"Own {number}\n\n---\n\nMore {number}") for number in range(3)]
        assert find_repeated_blocks(pages).without(pages[0].markdown) == pages[0].markdown
        assert kept(pages) == []

    def test_a_repeated_picture_is_kept_once(self):
        pages = [text(f"/{number}", f"![Logo](/logo.png)\n\nOwn {number}") for number in range(3)]
        assert find_repeated_blocks(pages).without(pages[0].markdown) == "Own 0"
        assert kept(pages) == ["![Logo](/logo.png)"]

    def test_a_page_of_repeated_blocks_alone_has_no_text_of_its_own(self):
        pages = [*FRAMED, text("/e", "We use cookies.\n\nMill Lane 7")]
        assert find_repeated_blocks(pages).without(pages[-1].markdown) == ""

    def test_blank_lines_in_code_cut_no_block(self):
        markdown = "```\none\n\ntwo\n```\n\nAfter\n\n~~~~\n```\n\n~~~~"
        assert blocks_of(markdown) == ["```\none\n\ntwo\n```", "After", "~~~~\n```\n\n~~~~"]


class TestWhereOtherPagesMarkIt:
    def test_what_stands_around_most_main_parts_is_taken_out_of_a_page_without_one(self):
        marked = [text(f"/{name}", f"# {name}", "We use cookies.", has_main=True) for name in "abc"]
        contact = text("/contact", "We use cookies.\n\n# Contact\n\nMill Lane 7")
        assert find_repeated_blocks([*marked, contact]).without(contact.markdown) == "# Contact\n\nMill Lane 7"
        assert kept([*marked, contact]) == ["We use cookies."]

    def test_what_fewer_than_three_or_than_half_of_them_say_stays(self):
        contact = text("/contact", "We use cookies.\n\nMill Lane 7")
        for others, pages in ((0, 2), (7, 3)):
            marked = [text(f"/{n}", f"# {n}", "We use cookies.", has_main=True) for n in range(pages)]
            marked += [text(f"/x{n}", f"# x{n}", has_main=True) for n in range(others)]
            assert "cookies" in find_repeated_blocks([*marked, contact]).without(contact.markdown)

    def test_an_address_that_the_page_says_beside_its_footer_is_its_own(self):
        marked = [text(f"/{name}", f"# {name}", "Mill Lane 7", has_main=True) for name in "abc"]
        contact = text("/contact", "# Contact\n\nMill Lane 7", "Mill Lane 7")
        assert "Mill Lane 7" in find_repeated_blocks([*marked, contact]).without(contact.markdown)

    def test_a_link_that_a_longer_menu_holds_too_is_no_text_of_the_page(self):
        link, menu = "- [Go to app](/app)", "- [Go to app](/app)\n- [Prices](/prices)"
        marked = [text(f"/{name}", f"# {name}", link, menu, has_main=True) for name in "abc"]
        start = text("/", f"{link}\n\nWelcome", menu)
        assert find_repeated_blocks([*marked, start]).without(start.markdown) == "Welcome"

    def test_the_sample_sites_contact_page_keeps_its_own_text_alone(self):
        pages = []
        for file in sorted((PROJECT / "crawler" / "sample_site").rglob("*.html")):
            content = select_content(file.read_text(), f"https://harbourlane.example/{file.name}")
            has_main = content.selected_by != "body"
            texts = to_markdown(content), landmark_markdown(content)
            pages.append(PageText(content.url, content.title, *texts, has_main=has_main))
        [contact] = [page for page in pages if not page.has_main]
        assert "cookies" in contact.markdown
        own = find_repeated_blocks(pages).without(contact.markdown)
        assert own.startswith("# Contact\n\nHarbour Lane Bicycles, 14 Harbour Lane") and "Tram 4" in own
        assert "cookies" not in own and "Home" not in own and "HRB" not in own
        assert any("cookies" in block for block in kept(pages)) and any("HRB" in block for block in kept(pages))


class TestWhatTheAuthorMarked:
    def test_a_main_part_is_left_as_it_is_however_often_it_repeats(self):
        pages = [text(f"/{number}", "The same in each\n\nand this", has_main=True) for number in range(5)]
        assert find_repeated_blocks(pages) == RepeatedBlocks()
        assert kept(pages) == []

    def test_a_footer_is_kept_once_with_the_number_of_its_pages(self):
        pages = [text(f"/{number}", f"Own {number}", "Call 0800 4444", has_main=True) for number in range(5)]
        [block] = blocks_around(pages)
        assert (block.markdown, block.url, block.page_count) == ("Call 0800 4444", "/0", 5)

    def test_a_menus_labels_that_are_titles_or_headings_are_said_already(self):
        pages = [
            text("/", "# Home", "- [Home](/)\n- [Prices](/prices)\n- [Our app](https://app.test)", has_main=True),
            text("/prices", "# Prices ¶\n\nBread: 3 euros", has_main=True),
        ]
        assert kept(pages) == ["- [Our app](https://app.test)"]

    def test_a_line_that_says_a_label_twice_is_said_already(self):
        pages = [text("/", "# Features", "- [ ] Features [Features](/features)", has_main=True)]
        assert kept(pages) == []

    def test_a_table_of_the_pages_own_contents_is_said_already(self):
        contents = "- [How to pay](#pay)\n- [How to return](#return)"
        assert kept([text("/", "How to pay: by card. **How to return**: by post.", contents, has_main=True)]) == []

    def test_part_of_a_longer_word_is_not_said_already(self):
        assert kept([text("/", "Our homepages", "Home", has_main=True)]) == ["Home"]

    def test_what_two_footers_have_in_common_is_kept_once(self):
        first, second = "- Tel. 111\n- Mill Lane", "- Tel. 222\n- Mill Lane"
        pages = [text("/a", "A", first, has_main=True), text("/b", "B", second, has_main=True)]
        assert kept(pages) == ["- Tel. 111", "- Mill Lane", "- Tel. 222"]

    def test_the_lines_of_a_list_stay_together(self):
        pages = [text("/", "A", "Open:\n\n- Monday\n- Tuesday\n\nCall us", has_main=True)]
        blocks = blocks_around(pages)
        assert join_blocks(blocks) == "Open:\n\n- Monday\n- Tuesday\n\nCall us"


class TestSitesOfVeryManyBlocks:
    def test_what_most_pages_say_is_counted_while_what_few_say_is_forgotten(self):
        tally, menu = PageTally(), digest_of("menu")
        once = [[digest_of(f"{page} {block}") for block in range(MAX_COUNTED // 4)] for page in range(20)]
        for blocks in once:
            tally.add((menu, *blocks))
        assert sum(key in tally for blocks in once for key in blocks) < MAX_COUNTED
        assert tally.most(20) == {menu}
        assert 20 - sum(map(len, once)) // MAX_COUNTED <= tally[menu] <= 20

    def test_all_that_single_pages_say_around_their_text_is_kept(self):
        lines = [[f"- line {page} {line}" for line in range(MAX_COUNTED // 4)] for page in range(6)]
        around = ["Call us\n\n" + "\n".join(own) for own in lines]
        blocks = blocks_around([text(f"/{n}", "A", marked, has_main=True) for n, marked in enumerate(around)])
        assert [block.markdown for block in blocks] == ["Call us", *(line for own in lines for line in own)]
        assert blocks[0].page_count > 1 == blocks[1].page_count
