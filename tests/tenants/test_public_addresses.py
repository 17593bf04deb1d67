import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.public_addresses import address_spelled_by, is_loopback_address, is_public_address, plain_host

CLOSED_EXAMPLES = ["127.0.0.1", "10.1.2.3", "169.254.169.254", "100.64.0.1", "192.168.0.1", "198.18.5.5", "203.0.113.9"]


def test_addresses_of_the_case_get_the_listed_verdict(case):
    addresses = case("X01")["input"]["addresses"]
    assert len(addresses["blocked"]) == 25
    assert len(addresses["allowed"]) == 4
    assert [ip for ip in addresses["blocked"] if is_public_address(ip)] == []
    assert [ip for ip in addresses["allowed"] if not is_public_address(ip)] == []


@given(st.ip_addresses(v=4))
def test_whatever_the_standard_library_calls_private_or_reserved_is_closed(address):
    if address.is_private or address.is_reserved or address.is_multicast or address.is_link_local:
        assert not is_public_address(str(address))


@pytest.mark.parametrize(
    "network",
    [
        "::/8",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/32",
        "2001:db8::/32",
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fe80::/10",
    ],
)
@given(chosen=st.integers(min_value=0))
def test_ranges_without_public_hosts_are_closed_throughout(network, chosen):
    network = ipaddress.ip_network(network)
    address = network[chosen % network.num_addresses]
    assert address in ipaddress.ip_network("::ffff:0:0/96") or not is_public_address(str(address))


@given(st.ip_addresses(v=4))
def test_a_form_that_carries_an_ipv4_address_gets_that_addresss_verdict(address):
    number = int(address)
    forms = [
        ipaddress.IPv6Address(0xFFFF << 32 | number),
        ipaddress.IPv6Address((0x64FF9B << 96) | number),
        ipaddress.IPv6Address(0x2002 << 112 | number << 80 | 1),
    ]
    assert {is_public_address(str(form)) for form in forms} == {is_public_address(str(address))}
    assert not is_public_address(str(ipaddress.IPv6Address(number))), "the compatible form is never public"


@pytest.mark.parametrize("text", ["", "localhost", "8.8.8", "0177.0.0.1", "8.8.8.8 ", "2606:4700::1111%eth0", "::ffff"])
def test_what_is_no_plain_address_is_not_public(text):
    assert not is_public_address(text)


def test_loopback_is_known_in_all_its_forms():
    assert all(map(is_loopback_address, ["127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1"]))
    assert not any(map(is_loopback_address, ["0.0.0.0", "::", "10.0.0.1", "localhost", "8.8.8.8"]))


@pytest.mark.parametrize("ip", CLOSED_EXAMPLES)
def test_every_numeric_spelling_is_read_as_the_address_it_means(ip):
    number = int(ipaddress.ip_address(ip))
    first, *rest = ip.split(".")
    spellings = [
        ip,
        str(number),
        hex(number),
        f"0{number:o}",
        ".".join(f"0{int(part):o}" for part in ip.split(".")),
        ".".join(hex(int(part)) for part in ip.split(".")),
        f"{first}.{int(ipaddress.ip_address('0.' + '.'.join(rest)))}",
    ]
    assert [address_spelled_by(spelling) for spelling in spellings] == [ip] * len(spellings)


@given(st.ip_addresses(v=4), st.sampled_from("0123"), st.sampled_from(".。．｡"))
def test_wide_and_circled_digits_are_folded_before_an_address_is_read(address, style, stop):
    digits = {"0": "０１２３４５６７８９", "1": "⓪①②③④⑤⑥⑦⑧⑨", "2": "𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗", "3": "0123456789"}[style]
    written = str(address).translate(str.maketrans("0123456789", digits)).replace(".", stop)
    assert address_spelled_by(plain_host(written)) == str(address)


def test_numbers_that_are_no_address_are_an_error_and_names_are_none():
    with pytest.raises(ValueError, match="no IP address"):
        address_spelled_by("300.1.1.1")
    assert address_spelled_by("ex.test") is None
    assert plain_host("Ex.Test.") == "ex.test"
    assert plain_host("[::1]") == "::1"
