"""manage.py backup_tenant SLUG: one file with everything the tenant owns, copied while it is in use."""

from pathlib import Path

from django.conf import settings
from django.core.management.base import CommandError
from django.utils import timezone

from tenants.reporting import ReportingCommand, tenant_named
from tenants.store import back_up_store


class Command(ReportingCommand):
    help = "Copy a tenant's store to a file."

    def add_arguments(self, parser):
        super().add_arguments(parser)
        parser.add_argument("slug")
        parser.add_argument("--to", type=Path, metavar="FILE", help="default: dated, in the data folder's backups")

    def report(self, *, slug, to: Path | None, **options):
        tenant = tenant_named(slug)
        stamp = timezone.now().strftime("%Y%m%d-%H%M%S")
        target = (to or settings.BACKUPS_DIR / f"{slug}-{tenant.pk}-{stamp}.sqlite3").resolve()
        if target.exists():
            raise CommandError(f"{target} is there already: name another file.")
        back_up_store(tenant, target)
        return {"slug": slug, "file": str(target), "bytes": target.stat().st_size}

    def as_text(self, report):
        return f"{report['slug']} is backed up: {report['file']} ({report['bytes']:,} bytes)"
