from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.web.traps import ACTION, COMBINED_FILTERS, FAR_DATE, OTHER_VIEW, trap_in

THIS_YEAR = date.today().year
AHEAD, BACK = THIS_YEAR + 3, THIS_YEAR - 6


@pytest.mark.parametrize(
    ("trap", "paths"),
    [
        (
            ACTION,
            [
                "/shop/?add-to-cart=17",
                "/wishlist?add_to_wishlist=17",
                "/cart?remove_item=a1",
                "/logout",
                "/account/sign-out/",
                "/wp-login.php?action=logout",
                "/w/index.php?title=Start&action=edit",
                "/start?do=login",
            ],
        ),
        (
            OTHER_VIEW,
            [
                "/shop?sort=price",
                "/shop?page=2&orderby=date",
                "/shop?sort_by=name&x=1",
                "/shop?order=asc",
                "/shop?dir=desc",
                "/shop?view=grid",
                "/shop?per_page=48",
                "/shop?perpage=48",
                "/shop?itemsPerPage=10",
                "/post/?replytocom=77",
                "/files/?C=M;O=D",
                "/w/?printable=yes",
            ],
        ),
        (
            COMBINED_FILTERS,
            [
                "/shop?filter_color=red&filter_size=m",
                "/shop?f[0]=color%3Ared&f[1]=size%3Am",
                "/shop?filter%5Bcolor%5D%5B%5D=red&filter%5Bcolor%5D%5B%5D=blue",
                "/shop?pa_color=red&filter_size=m",
            ],
        ),
        (
            FAR_DATE,
            [
                f"/calendar/{AHEAD}/05/",
                f"/calendar/{AHEAD}-05-14",
                f"/calendar/{BACK}/05/",
                f"/{AHEAD}/5",
                f"/events?month={AHEAD}-05",
                f"/events?tribe-bar-date={BACK}-05-01",
                f"/?year={AHEAD}&month=3",
                f"/?year={BACK}&month=3",
                f"/?cal_date={AHEAD}0514",
                f"/?day=14.05.{AHEAD}",
                f"/?from={AHEAD}-05-14T10:00:00",
                "/kalender/?datum=01%2F2090",
                "/calendar/1032/05/",
            ],
        ),
    ],
)
def test_a_link_into_a_trap_is_recognised(trap, paths):
    assert {path: trap_in(f"https://ex.test{path}") for path in paths} == dict.fromkeys(paths, trap)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/shop?color=red&size=m",
        "/shop?filter_color=red",
        "/index.php?option=com_content&view=article&id=5&Itemid=7&lang=en",
        "/orders?order=1234",
        "/sortiment?sorte=apfel",
        "/blog/logout-problems",
        "/how-to?action=recycling",
        "/page/2/",
        "/list?page=300",
        f"/blog/{BACK - 20}/05/first-post",
        f"/archive?year={BACK - 30}",
        f"/calendar/{THIS_YEAR}/05/",
        f"/calendar/{THIS_YEAR + 1}-12-31",
        f"/events?month={THIS_YEAR - 1}-05",
        f"/{AHEAD}-strategy",
        "/rfc/2119/12345",
        "/phone/2500-series",
        "/products/3000/99",
        "/view?mode=article",
    ],
)
def test_an_honest_link_is_none(path):
    assert trap_in(f"https://ex.test{path}") is None


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_address_at_all_fails(path, query):
    assert trap_in(f"https://ex.test/{path.replace('?', '')}?{query}") in (
        None,
        ACTION,
        OTHER_VIEW,
        COMBINED_FILTERS,
        FAR_DATE,
    )


def test_a_hostile_address_takes_no_longer():
    assert trap_in("https://ex.test/" + "1999/12/" * 10_000 + "?" + "date=1.1." * 10_000) is None
