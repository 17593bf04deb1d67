"""manage.py migrate_tenants: the control database and every tenant's store brought up to date, each by itself."""

from django.core.management.base import CommandError

from tenants.models import Tenant
from tenants.reporting import ReportingCommand


class Command(ReportingCommand):
    help = "Bring all stores up to date. One that fails is reported and stays closed; the others go on."

    def handle(self, **options):
        super().handle(**options)
        if self.failures:
            lines = "".join(f"\n  {error.slug}: {error.reason}" for error in self.failures)
            raise CommandError(f"{len(self.failures)} of the stores stay closed:{lines}")

    def report(self, *, failures, **options):
        self.failures = failures
        closed = {error.slug: error.reason for error in failures}
        slugs = Tenant.objects.values_list("slug", flat=True)
        return {
            "ready": [slug for slug in slugs if slug not in closed],
            "failed": [{"slug": slug, "reason": reason} for slug, reason in closed.items()],
        }

    def as_text(self, report):
        return f"{len(report['ready'])} stores are up to date."
