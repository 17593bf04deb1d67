"""manage.py delete_tenant SLUG: a tenant with its members, keys and whole store gone for good."""

from django.conf import settings
from django.core.management.base import CommandError

from tenants import installation
from tenants.reporting import ReportingCommand, tenant_named


class Command(ReportingCommand):
    help = "Delete a tenant and everything it owns. Its back-ups are left, and named."

    def add_arguments(self, parser):
        super().add_arguments(parser)
        parser.add_argument("slug")
        parser.add_argument("--yes", action="store_true", help="do not ask; --json needs it")

    def report(self, *, slug, yes: bool, json: bool, **options):
        tenant = tenant_named(slug)
        if not yes and (json or not _is_confirmed(slug)):
            raise CommandError(f"{slug} was not deleted: confirm it, with --yes or by its slug.")
        backups = sorted(str(file) for file in settings.BACKUPS_DIR.glob(f"{slug}-{tenant.pk}-*.sqlite3"))
        installation.delete_tenant(tenant)
        return {"slug": slug, "is_deleted": True, "backups_left": backups}

    def as_text(self, report):
        backups = [f"A back-up is left: {file}" for file in report["backups_left"]]
        return "\n".join([f"{report['slug']} is deleted.", *backups])


def _is_confirmed(slug: str) -> bool:
    try:
        return input(f"Delete {slug} with all its models and history? Type its slug: ").strip() == slug
    except EOFError:
        return False
