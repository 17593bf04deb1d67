"""Child processes that work on several pages at once: reading HTML and splitting Markdown take a processor each.

They get plain values and give plain values back; none opens a store or the network. What a child runs is
page_worker.py, started as a program of its own, so that it works in a command, a worker's thread and a test alike.
"""

import logging
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol

from django.conf import settings

logger = logging.getLogger(__name__)

PROJECT = Path(__file__).resolve().parent.parent
MOST_CHILDREN = 3
# A child takes a second to start: pages so few are done before it would be of use.
PAGES_BEFORE_START = 40
AHEAD = 4  # pages in hand for each child: it need not wait for the next
# Pages stored in one transaction, which takes as long as storing one page does; what reads the store waits for it.
AT_ONCE = 5


class ChildDied(Exception):
    """A child process ended while it worked on a page: the page may need more memory than a child may take."""


class Task(Protocol):
    """Work on a page that may be under way elsewhere."""

    def result(self) -> Any:
        """Return what the work gave, or raise what it raised; waits for it."""


@dataclass(frozen=True)
class LaterTask:
    """Work that is done here, when its result is asked for."""

    function: Callable
    arguments: tuple

    def result(self) -> Any:
        return self.function(*self.arguments)


def result_of(task: Task, function: Callable, *arguments: Any) -> Any:
    """Return what the task gives, or, where no child could do it, what the function does here with more memory."""
    try:
        return task.result()
    except (ChildDied, MemoryError):
        return function(*arguments)


class PagePool:
    """Does work on pages in child processes, once there is enough of it; a context at whose end they are gone."""

    def __init__(self, size: int | None = None, pages_before_start: int = PAGES_BEFORE_START):
        self._size = _children_of_use() if size is None else size
        self._pages_left = pages_before_start
        self._idle: SimpleQueue[_Child] = SimpleQueue()
        self._children: set[_Child] = set()
        self._lock = threading.Lock()
        self._is_closed = False
        self._threads: ThreadPoolExecutor | None = None
        self._starting: list[Future] = []

    def __enter__(self) -> "PagePool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def room(self) -> int:
        """How many pages may be in hand beside the one that is wanted next."""
        return self._size * AHEAD if self._is_ready else 0

    @property
    def at_once(self) -> int:
        """How many pages it is worth while to store together: of few pages each shows at once."""
        return AT_ONCE if self._is_ready else 1

    @property
    def pids(self) -> list[int]:
        """The ids of the processes that run for it now."""
        with self._lock:
            return [child.pid for child in self._children]

    def expect(self, page_count: int) -> None:
        """Say how many pages are known to come: if they are many, the children start now, not when these are met."""
        if self._size and self._threads is None and page_count > self._pages_left:
            self._start_children()

    def submit(self, function: Callable, *arguments: Any) -> Task:
        """Return the task of calling the function, one of a module's own, with values that can be pickled.

        Its result raises ChildDied where two children in a row died of it.
        """
        if self._size and self._threads is None:
            self._pages_left -= 1
            if self._pages_left < 0:
                self._start_children()
        if self._is_ready:
            return self._threads.submit(self._ask, function, arguments)
        return LaterTask(function, arguments)

    def close(self) -> None:
        """End the children, whatever they are at."""
        with self._lock:
            self._is_closed = True
            for child in self._children:
                child.kill()
        if self._threads:
            self._threads.shutdown(cancel_futures=True)
        for child in self._children:
            child.bury()
        self._children.clear()

    @property
    def _is_ready(self) -> bool:
        return not self._is_closed and any(started.done() and not started.exception() for started in self._starting)

    def _start_children(self) -> None:
        self._threads = ThreadPoolExecutor(self._size, thread_name_prefix="page-pool")
        self._starting = [self._threads.submit(self._add_child) for _ in range(self._size)]

    def _add_child(self) -> None:
        try:
            with self._lock:
                if self._is_closed:
                    raise ChildDied
                child = _Child()
                self._children.add(child)
            child.ask(_greeting, ())
        except (OSError, ChildDied):
            if not self._is_closed:
                logger.exception("A process for reading pages could not be started.")
            raise
        self._idle.put(child)

    def _ask(self, function: Callable, arguments: tuple) -> Any:
        try:
            return self._ask_one(function, arguments)
        except ChildDied:
            if self._is_closed:
                raise
            logger.warning("A process died reading a page; the page is tried once more, in another one.")
            return self._ask_one(function, arguments)

    def _ask_one(self, function: Callable, arguments: tuple) -> Any:
        child = self._idle.get()
        try:
            is_well, answer = child.ask(function, arguments)
        except ChildDied:
            with self._lock:
                self._children.discard(child)
            child.bury()
            self._add_child()
            raise
        self._idle.put(child)
        if not is_well:
            raise answer
        return answer


class _Child:
    """A process that answers one question after another."""

    def __init__(self) -> None:
        folders = {name: str(getattr(settings, name)) for name in ("SITEWISE_DATA_DIR", "SITEWISE_MODELS_DIR")}
        self._running = subprocess.Popen(
            [sys.executable, "-m", "crawler.page_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=PROJECT,
            env=os.environ | folders,
        )

    @property
    def pid(self) -> int:
        return self._running.pid

    def ask(self, function: Callable, arguments: tuple) -> tuple[bool, Any]:
        """Return whether all went well, and what the function returned or raised. Errors: ChildDied."""
        question = pickle.dumps((function, arguments), pickle.HIGHEST_PROTOCOL)
        try:
            self._running.stdin.write(question)
            self._running.stdin.flush()
            return pickle.load(self._running.stdout)  # noqa: S301 - from a process of our own, through its pipe
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            raise ChildDied("A page needs more memory or another computer than it may take.") from error

    def kill(self) -> None:
        self._running.kill()

    def bury(self) -> None:
        """End the process and let go of its pipes."""
        self._running.kill()
        self._running.wait()
        for pipe in (self._running.stdin, self._running.stdout):
            try:
                pipe.close()
            except OSError:  # what was not sent stays so
                continue


def _greeting() -> None:
    """What a child is asked first: it answers once it has started."""


def _children_of_use() -> int:
    """Return how many children make an import faster: none on a machine with one processor."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(processors, MOST_CHILDREN) if processors > 1 else 0
