"""What commands on tenants have in common: the installation made ready, one report, as text or one JSON document."""

from argparse import ArgumentTypeError
from collections.abc import Callable

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError

from tenants import installation
from tenants.models import Tenant
from tenants.store import StoreNotReady
from tenants.texts import json_line, printable, storable


class ReportingCommand(BaseCommand):
    """Does one thing in `report` and says it in `as_text`; what goes wrong is one line and exit code 1."""

    def add_arguments(self, parser):
        parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")

    def handle(self, **options):
        # An argument's bytes may be no UTF-8; a path is none of these, its bytes are its name.
        options = {name: storable(value) if isinstance(value, str) else value for name, value in options.items()}
        try:
            failures = installation.prepare()
            report = self.report(failures=failures, **options)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        except (installation.ControlDatabaseBroken, StoreNotReady, OSError) as error:
            raise CommandError(str(error)) from error
        except OperationalError as error:  # that of tenants and their members: those of the stores are named above
            raise CommandError(f"The database cannot be used: {error}.") from error
        self.stdout.write(json_line(report) if options["json"] else printable(self.as_text(report)))

    def report(self, **options) -> dict:
        """Do the work and return what came of it."""
        raise NotImplementedError

    def as_text(self, report: dict) -> str:
        """Return the report for a person."""
        raise NotImplementedError


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Return the type of a command's argument that is a number from `least` to `most`."""

    def read(argument: str) -> int:
        try:
            number = int(argument)
        except ValueError:
            number = None
        if number is None or not least <= number <= most:
            raise ArgumentTypeError(f"it must be a whole number from {least:,} to {most:,}.")
        return number

    return read


def tenant_named(slug: str) -> Tenant:
    """Return the tenant; raises CommandError, which names those there are, when it is none of them."""
    tenant = Tenant.objects.filter(slug=slug).first()
    if tenant is None:
        known = ", ".join(Tenant.objects.values_list("slug", flat=True)) or "none yet"
        raise CommandError(f"There is no tenant “{slug}” (there are: {known}). create_tenant {slug} would make it.")
    return tenant
