"""Who stands behind a request: proxies are believed by their network, and a visitor is a hash that lasts a day."""

import logging
from datetime import date, timedelta
from ipaddress import ip_network

import pytest
from django.test import RequestFactory

from tenants.models import DailySalt
from tenants.visitors import client_address, visitor_hash

TODAY = date(2026, 12, 7)
PROXIES = ("10.0.0.0/8", "127.0.0.1", "fd00::/8")


@pytest.fixture
def trusted(settings):
    settings.SITEWISE_TRUSTED_PROXIES = tuple(map(ip_network, PROXIES))


def asked(peer: str, forwarded: str | None = None):
    headers = {} if forwarded is None else {"x-forwarded-for": forwarded}
    return RequestFactory().get("/", headers=headers, REMOTE_ADDR=peer)


@pytest.mark.parametrize("forwarded", [None, "192.0.2.1", "1.1.1.1, 127.0.0.1"])
def test_without_a_trusted_proxy_the_peer_is_the_client_whatever_it_claims(settings, forwarded):
    settings.SITEWISE_TRUSTED_PROXIES = ()
    assert client_address(asked("127.0.0.1", forwarded)) == "127.0.0.1"


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("127.0.0.1", "198.51.100.7", "198.51.100.7"),
        ("127.0.0.1", "192.0.2.1, 198.51.100.7", "198.51.100.7"),
        ("127.0.0.1", "192.0.2.1, 198.51.100.7, 10.1.2.3", "198.51.100.7"),
        ("127.0.0.1", "10.1.2.3, 10.9.9.9", "10.1.2.3"),
        ("127.0.0.1", "198.51.100.7:4711", "198.51.100.7"),
        ("127.0.0.1", "2001:db8::7", "2001:db8::7"),
        ("fd00::1", '"[2001:db8::7]:4711"', "2001:db8::7"),
        ("::ffff:10.0.0.5", "::ffff:198.51.100.7", "198.51.100.7"),
        ("203.0.113.9", "198.51.100.7", "203.0.113.9"),
        ("127.0.0.1", "198.51.100.7, unknown", "127.0.0.1"),
        ("127.0.0.1", "198.51.100.7, <script>, 10.0.0.1", "10.0.0.1"),
        ("127.0.0.1", "", "127.0.0.1"),
        ("127.0.0.1", " , ,", "127.0.0.1"),
        ("", "198.51.100.7", "0.0.0.0"),
    ],
)
def test_of_the_header_the_rightmost_address_that_is_no_trusted_proxy_counts(trusted, peer, forwarded, client):
    assert client_address(asked(peer, forwarded)) == client


def test_a_header_that_is_not_believed_is_told_once(settings, caplog):
    settings.SITEWISE_TRUSTED_PROXIES = ()
    with caplog.at_level(logging.WARNING, "tenants.visitors"):
        for _ in range(2):
            client_address(asked("203.0.113.77", "198.51.100.7"))
    assert caplog.text.count("add its address to SITEWISE_TRUSTED_PROXIES") == 1
    assert "203.0.113.77" in caplog.text and "198.51.100.7" not in caplog.text


def test_a_visitor_is_the_same_all_day_and_another_the_next_day_and_at_another_tenant(db):
    first = visitor_hash(1, "address", "198.51.100.7", TODAY)
    assert len(first) == 32 and "198" not in first
    assert visitor_hash(1, "address", "198.51.100.7", TODAY) == first
    others = [
        visitor_hash(1, "address", "198.51.100.8", TODAY),
        visitor_hash(2, "address", "198.51.100.7", TODAY),
        visitor_hash(1, "session", "198.51.100.7", TODAY),
        visitor_hash(1, "address", "198.51.100.7", TODAY + timedelta(days=1)),
    ]
    assert len({first, *others}) == 5


def test_one_household_of_ipv6_is_one_visitor(db):
    same = {visitor_hash(1, "address", f"2001:db8:1:2::{end}", TODAY) for end in ("1", "ffff:1")}
    assert len(same) == 1
    assert visitor_hash(1, "address", "2001:db8:1:3::1", TODAY) not in same


def test_yesterdays_salt_is_thrown_away_also_by_a_clock_that_was_set_back(db):
    visitor_hash(1, "user", "ann", TODAY)
    visitor_hash(1, "user", "ann", TODAY + timedelta(days=1))
    assert [row.day for row in DailySalt.objects.all()] == [TODAY + timedelta(days=1)]
    visitor_hash(1, "user", "ann", TODAY)
    assert [row.day for row in DailySalt.objects.all()] == [TODAY]
