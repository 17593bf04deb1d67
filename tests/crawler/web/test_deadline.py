import socket

import pytest

from crawler.web.deadline import Deadline, PlainSocket


def test_there_is_no_deadline_outside_a_page():
    assert Deadline().remaining_seconds() == float("inf")


def test_a_deadline_that_has_passed_is_a_timeout():
    deadline = Deadline()
    with deadline.within(0), pytest.raises(TimeoutError):
        deadline.remaining_seconds()


def test_a_wait_moves_the_deadline():
    deadline = Deadline()
    with deadline.within(0):
        deadline.postpone(1_000)
        assert 0 < deadline.remaining_seconds() <= 1_000


def test_a_nested_page_has_its_own_deadline_and_leaves_the_outer_one():
    deadline = Deadline()
    with deadline.within(1_000):
        with deadline.within(0), pytest.raises(TimeoutError):
            deadline.remaining_seconds()
        assert 0 < deadline.remaining_seconds() <= 1_001


def test_a_socket_gives_up_a_read_at_the_deadline_and_reads_within_it():
    near, far = socket.socketpair()
    reader = PlainSocket(fileno=near.detach())
    reader.deadline = Deadline()
    with reader, far:
        far.sendall(b"x")
        with reader.deadline.within(1_000):
            assert reader.recv_into(bytearray(1)) == 1
        with reader.deadline.within(0), pytest.raises(TimeoutError):
            reader.recv_into(bytearray(1))
