"""Tells the addresses that anybody may reach from those inside a network, in every spelling an address can have.

Knows ranges and spellings only; `addresses.py` decides what to do about them.
"""

import re
import socket
import unicodedata
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

DEFAULT_PORTS = {"http": 80, "https": 443}
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

# IANA's special-purpose registries (RFC 6890 and what it lists since), multicast and the reserved class E.
CLOSED_IPV4 = tuple(
    ip_network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
# Of IPv6 only the range handed out for global use is open, without the tunnels (Teredo lies in 2001::/23), the
# benchmark and the documentation ranges inside it.
OPEN_IPV6 = ip_network("2000::/3")
CLOSED_IPV6 = tuple(ip_network(network) for network in ("2001::/23", "2001:db8::/32", "3fff::/20"))
# Forms that carry the IPv4 address which a packet reaches in the end: mapped, NAT64, 6to4. Beside each, how many
# bits stand to the right of it. (The old "compatible" form ::a.b.c.d lies outside the open range.)
EMBEDDING_IPV6 = (
    (ip_network("::ffff:0:0/96"), 0),
    (ip_network("64:ff9b::/96"), 0),
    (ip_network("2002::/16"), 80),
)
LOOPBACK_IPV4 = ip_network("127.0.0.0/8")
LOOPBACK_IPV6 = IPv6Address("::1")

# One to four numbers, each decimal, octal or hexadecimal: what inet_aton, and with it every resolver, takes for IPv4.
NUMERIC_HOST = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+)){0,3}")
# Full stops of other scripts separate labels too (UTS 46).
OTHER_FULL_STOPS = str.maketrans("。．｡", "...")


def is_public_address(ip: str) -> bool:
    """Return whether anybody on the internet may reach the address; a text that is no address is not public."""
    try:
        return _is_public(ip_address(ip))
    except ValueError:
        return False


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in CLOSED_IPV4)
    if address.scope_id:
        return False
    embedded = _embedded_ipv4(address)
    if embedded is not None:
        return _is_public(embedded)
    return address in OPEN_IPV6 and not any(address in network for network in CLOSED_IPV6)


def _embedded_ipv4(address: IPv6Address) -> IPv4Address | None:
    for network, bits_after in EMBEDDING_IPV6:
        if address in network:
            return IPv4Address(int(address) >> bits_after & 0xFFFFFFFF)
    return None


def is_loopback_address(ip: str) -> bool:
    """Return whether the address is this machine's own: 127.0.0.0/8, also mapped into IPv6, or ::1."""
    try:
        address = ip_address(ip)
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        return address == LOOPBACK_IPV6 or (address.ipv4_mapped or address) in LOOPBACK_IPV4
    return address in LOOPBACK_IPV4


def plain_host(host: str) -> str:
    """Return the host as a resolver reads it: lower case, wide and circled forms folded, no brackets, no last dot."""
    folded = unicodedata.normalize("NFKC", host.strip("[]").translate(OTHER_FULL_STOPS))
    return folded.lower().rstrip(".")


def address_spelled_by(host: str) -> str | None:
    """Return the address that a plain host spells in numbers of any base, or None if it is a name.

    Errors: ValueError for numbers that are no address, such as 300.1.1.1.
    """
    try:
        return str(ip_address(host))
    except ValueError:
        pass
    if not NUMERIC_HOST.fullmatch(host):
        return None
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError as error:
        raise ValueError(f"{host} is no IP address") from error
