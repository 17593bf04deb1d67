"""Who stands behind a request: the client's address, on trusted proxies' word alone, and a hash that tells them apart.

A proxy is trusted by its network (SITEWISE_TRUSTED_PROXIES). Of X-Forwarded-For the rightmost address counts that is no
trusted proxy's: everything to its left is what the client claims.
"""

import hmac
import logging
from datetime import date
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from django.conf import settings
from django.db import IntegrityError, OperationalError
from django.http import HttpRequest

from tenants.models import DailySalt

UNKNOWN_ADDRESS = "0.0.0.0"  # noqa: S104  no address to listen on: a server on a local socket names none
IPV6_PREFIX = 64  # bits: one household or phone has at least so many addresses for itself
HASH_CHARACTERS = 32

logger = logging.getLogger(__name__)


def client_address(request: HttpRequest) -> str:
    """Return the address of the client that asks: its own, or what the trusted proxies before us say of it."""
    peer = _address(request.META.get("REMOTE_ADDR", ""))
    forwarded = request.headers.get("X-Forwarded-For", "")
    if forwarded and not _is_trusted(peer):
        _warn_once(str(peer))
    address = peer
    for claimed in reversed(forwarded.split(",")):
        if not _is_trusted(address) or (upstream := _address(claimed)) is None:
            break
        address = upstream
    return str(address or UNKNOWN_ADDRESS)


def visitor_hash(tenant_id: int, kind: str, name: str, today: date) -> str:
    """Return what tells this visitor of a tenant apart today: 32 characters that lead back to nobody.

    kind says what the name is ("address", "user", "session"): one never passes for another.
    """
    if kind == "address":
        name = _household(name)
    text = f"{tenant_id}\n{kind}\n{name}".encode()
    return hmac.new(_salt_of(today).encode(), text, "sha256").hexdigest()[:HASH_CHARACTERS]


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address in an entry of the header, which may carry a port; None for anything else."""
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _is_trusted(address: IPv4Address | IPv6Address | None) -> bool:
    return address is not None and any(address in network for network in settings.SITEWISE_TRUSTED_PROXIES)


def _household(address: str) -> str:
    parsed = ip_address(address)
    return str(ip_network((parsed, IPV6_PREFIX), strict=False)) if parsed.version == 6 else address


@cache
def _warn_once(peer: str) -> None:
    logger.warning(
        "A request from %s names its client in X-Forwarded-For, which is not believed: all visitors behind it count as "
        "one. If that is your proxy, add its address to SITEWISE_TRUSTED_PROXIES.",
        peer,
    )


def _salt_of(today: date) -> str:
    """Return the day's salt, the same in all processes; those of other days are thrown away."""
    salt = DailySalt.objects.filter(day=today).values_list("salt", flat=True).first()
    if salt is None:
        try:
            DailySalt.objects.exclude(day=today).delete()
            salt = DailySalt.objects.create(day=today).salt
        except IntegrityError:  # another process was first
            salt = DailySalt.objects.get(day=today).salt
        except OperationalError as error:  # a full disk: whoever asks is answered all the same
            logger.error("The day's salt cannot be stored, so each process has its own: %s", error)
            salt = _unstored_salt(today)
    return salt


@cache
def _unstored_salt(today: date) -> str:
    return DailySalt(day=today).salt
