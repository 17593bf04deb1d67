"""Finds the site's name at the end of its pages' titles: said on every page, it tells none of them from the others."""

import re
from collections import Counter
from collections.abc import Iterable

MIN_PAGES = 3
MIN_SHARE = 0.5
# What people put between a page's title and the site's name: "Prices | Acme", "Prices - Acme", "Prices – Acme".
SEPARATED_END = re.compile(r"\s+(?:[|·•»–—-]|::)\s+[^|·•»–—]+$")


def find_site_name(titles: Iterable[str]) -> str:
    """Return the end, separator included, that at least half of the titles share; "" where there is none."""
    ends, count = Counter(), 0
    for title in titles:
        count += 1
        end = SEPARATED_END.search(title)
        if end:
            ends[end[0]] += 1
    end, shared = max(ends.items(), key=lambda counted: counted[1], default=("", 0))
    return end if count >= MIN_PAGES and shared >= MIN_SHARE * count else ""


def without_site_name(title: str, site_name: str) -> str:
    """Return the title without the site's name at its end, unless nothing else would be left."""
    return title.removesuffix(site_name) or title


def bare_site_name(site_name: str) -> str:
    """Return what find_site_name found, without the separator."""
    return re.sub(r"^[\W_]+", "", site_name)
