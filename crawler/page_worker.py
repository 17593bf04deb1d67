"""The program that a child of page_pool.py runs: it answers questions about pages until nobody asks any more.

A question is a function and its arguments, an answer whether all went well and what was returned or raised.
"""

import gc
import os
import pickle
import signal
import sys
import threading
from queue import SimpleQueue
from typing import BinaryIO

MOST_BYTES = 1_500_000_000  # of memory: a page of ten megabytes takes half of it


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the parent, which ends its children
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what is printed is no answer
    _limit_memory()
    _load()
    _work_quietly()
    questions: SimpleQueue[tuple] = SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, questions), daemon=True).start()
    while True:
        function, arguments = questions.get()
        try:
            answer = True, function(*arguments)
        except Exception as error:
            answer = False, error
        answers.write(_pickled(answer))
        answers.flush()


def _listen(asked: BinaryIO, questions: SimpleQueue) -> None:
    """Take questions until the parent has gone, however it went: then this process ends, in mid-page if need be."""
    try:
        while True:
            questions.put(pickle.load(asked))  # noqa: S301 - from the parent, through its pipe
    finally:
        os._exit(0)


def _pickled(answer: tuple) -> bytes:
    try:
        return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        return pickle.dumps((False, RuntimeError(f"{answer[1]!r} could not be handed over: {error}")))


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = MOST_BYTES if most == resource.RLIM_INFINITY else min(MOST_BYTES, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, most))


def _work_quietly() -> None:
    """Let the parent and whoever asks the site's chatbot go first, and look for garbage about once a page."""
    from models_app.memory import OBJECTS_BETWEEN_SEARCHES

    os.nice(5)
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_SEARCHES)


def _load() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    import crawler.page_content
    import crawler.page_split  # noqa: F401 - both are loaded before the first page comes


if __name__ == "__main__":
    main()
