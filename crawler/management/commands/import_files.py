"""manage.py import_files TENANT/MODEL FILE...: files imported to their end in this process; no worker is needed."""

import time
from collections import Counter
from pathlib import Path

from django.conf import settings
from django.core.management.base import CommandError

from crawler.crawl import ImportRunning
from crawler.documents.reader import DocumentUnreadable
from crawler.management.commands import import_site
from crawler.models import Import, Upload
from crawler.previews import preview, start_upload, take_in, too_large
from models_app.models import MLModel, Retrieval
from models_app.targets import activated_tenant, split_target
from tenants.store import tenant_atomic

ROLES = ("prompt", "completion", "uri")


class Command(import_site.Command):
    help = "Import files into the model TENANT/MODEL, which is made with the defaults if it is not there."

    def add_arguments(self, parser):
        super(import_site.Command, self).add_arguments(parser)
        parser.add_argument("target", metavar="TENANT/MODEL")
        parser.add_argument("files", metavar="FILE", nargs="+", type=Path)
        parser.add_argument("--prompt-column", metavar="NAME", help="Of rows: the column of titles.")
        parser.add_argument("--completion-column", metavar="NAME", help="Of rows: the column of texts.")
        parser.add_argument("--uri-column", metavar="NAME", help="Of rows: the column of addresses.")
        parser.add_argument(
            "--retrieval",
            choices=Retrieval.values,
            help="Retrieval of a model that is made; one that is there keeps its own.",
        )

    def report(self, *, target, files, retrieval, **options):
        slug, model_slug = split_target(target)
        columns = {role: options[f"{role}_column"] for role in ROLES}
        bodies = _bodies(files)
        with activated_tenant(slug):
            try:
                # One transaction: what is refused leaves nothing behind, and no worker is quicker than this process.
                with tenant_atomic():
                    model = import_site.model_named(model_slug, retrieval)
                    uploads = [_take_in(model, path, body, columns) for path, body in bodies.items()]
                    job = start_upload(model, [upload.pk for upload in uploads])
                    self.job = Import.take(job.pk)
            except ImportRunning as error:
                raise CommandError(str(error)) from error
            started = time.monotonic()
            import_site.perform_watched(self.job)
            return {"target": target, **import_site.report_of(self.job, time.monotonic() - started)}


def _bodies(files: list[Path]) -> dict[Path, bytes]:
    """Return what is in the files; raises CommandError, also for two of one name, as one would replace the other."""
    names = Counter(path.name for path in files)
    name, count = names.most_common(1)[0]
    if count > 1:
        raise CommandError(f"{count} files are called {name}. Snippets stand under their file's name: rename them.")
    return {path: _body(path) for path in files}


def _body(path: Path) -> bytes:
    try:
        if path.stat().st_size > settings.SITEWISE_MAX_UPLOAD_BYTES:
            raise CommandError(f"{path} {too_large()}.")
        return path.read_bytes()
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from error


def _take_in(model: MLModel, path: Path, body: bytes, columns: dict[str, str | None]) -> Upload:
    """Return the file as it waits for its import; raises CommandError for one that cannot be imported."""
    try:
        upload = take_in(model, path.name, body)
    except DocumentUnreadable as error:
        raise CommandError(f"{path} {error.message}.") from error
    looked_at = preview(upload)
    if looked_at.is_rows:
        names = [column.name for column in looked_at.columns]
        unknown = [name for name in columns.values() if name and name not in names]
        if unknown:
            raise CommandError(f"{path} has no column “{unknown[0]}” (it has: {', '.join(names)}).")
        upload.options = {role: columns[role] or getattr(looked_at.chosen, role) for role in ROLES}
        upload.save()
        looked_at = preview(upload)
    if looked_at.error:
        raise CommandError(f"{path}: {looked_at.error}")
    return upload
