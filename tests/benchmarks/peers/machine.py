"""What the machine has left for engines: so that one that takes too much is left out, and the others go on."""

import os
import resource
import shutil
from pathlib import Path

PART_OF_MEMORY = 0.5  # that one engine may hold
SPARE_MEMORY = 0.1  # that all together leave free
COPIES = 4  # an engine's files may take so many times its vectors and texts, while it writes them anew
BYTES_A_TEXT = 2_000


def memory(what: str) -> int:
    """Return the bytes of the machine's memory: `MemTotal`, or `MemAvailable`."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{what}:"))


def bound_own_memory() -> None:
    """Let this process, an engine's, hold no more than its part: it fails, instead of the whole machine."""
    most = int(PART_OF_MEMORY * memory("MemTotal"))
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def lacks_memory() -> bool:
    return memory("MemAvailable") < SPARE_MEMORY * memory("MemTotal")


def lacks_disk(folder: Path, texts: int, dimensions: int) -> bool:
    """Tell whether the files of one more engine may not fit beside the folder."""
    return shutil.disk_usage(folder).free < COPIES * texts * (4 * dimensions + BYTES_A_TEXT)


def chill(folder: Path) -> None:
    """Drop the folder's files from the machine's cache: who asks next finds a cold disk. Nobody may have them open."""
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
