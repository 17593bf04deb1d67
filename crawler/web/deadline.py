"""One moment by which all of a page must have come, and the sockets that keep to it.

A timeout for each read alone lets a server that drips one byte at a time hold a worker for ever.
"""

import contextlib
import socket
import ssl
import time
from collections.abc import Iterator

QUICK_RECEIPT = getattr(socket, "TCP_QUICKACK", None)


class Deadline:
    """The moment by which everything for the current page must have been read."""

    def __init__(self) -> None:
        self._ends_at = float("inf")

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Set the deadline for a block; a block nested in another takes none of the outer one's time."""
        outer_end, started = self._ends_at, time.monotonic()
        self._ends_at = started + seconds
        try:
            yield
        finally:
            self._ends_at = outer_end + time.monotonic() - started

    def postpone(self, seconds: float) -> None:
        """Move the deadline, by a wait that is not the server's fault."""
        self._ends_at += seconds

    def remaining_seconds(self) -> float:
        """Return what is left. Errors: TimeoutError if nothing is."""
        remaining = self._ends_at - time.monotonic()
        if remaining <= 0:
            raise TimeoutError("the time for this page is over")
        return remaining


class _KeepsDeadline:
    """What both kinds of sockets share: no read lasts beyond the deadline."""

    deadline: Deadline | None = None

    def recv_into(self, *args) -> int:
        # A server that sends a page in two pieces may wait for the receipt of the first, which Linux holds back for
        # 40 ms on a connection that is used again; the option is good for one receipt.
        if QUICK_RECEIPT is not None and self.family != socket.AF_UNIX:
            self.setsockopt(socket.IPPROTO_TCP, QUICK_RECEIPT, 1)
        if self.deadline:
            self.settimeout(self.deadline.remaining_seconds())
        return super().recv_into(*args)


class PlainSocket(_KeepsDeadline, socket.socket):
    """A TCP socket with a deadline."""


class TLSSocket(_KeepsDeadline, ssl.SSLSocket):
    """A TLS socket with a deadline; an SSLContext makes it (`sslsocket_class`)."""
