"""manage.py create_tenant SLUG: a new tenant with an empty store and, if wanted, an owner."""

from django.contrib.auth import get_user_model
from django.core.validators import validate_email
from django.urls import reverse

from tenants import installation, invitations
from tenants.accounts import own_address
from tenants.models import Role
from tenants.reporting import ReportingCommand
from tenants.store import store_of


class Command(ReportingCommand):
    help = "Make a tenant. Its owner is somebody with an account, or is invited."

    def add_arguments(self, parser):
        super().add_arguments(parser)
        parser.add_argument("slug", help="its part of the address, such as acme")
        parser.add_argument("--name", default="", help="as people read it (default: the slug)")
        parser.add_argument("--owner", metavar="EMAIL", default="", help="an account's address, or whom to invite")

    def report(self, *, slug, name, owner, **options):
        user = _account_of(owner) if owner else None
        tenant = installation.create_tenant(slug, name, owner=user)
        link = _invitation_link(tenant, owner) if owner and user is None else ""
        place = {"id": tenant.pk, "slug": slug, "name": tenant.name, "store": str(store_of(tenant).path)}
        return place | {"owner": owner, "invitation_url": link}

    def as_text(self, report):
        lines = [f"Tenant {report['slug']} is ready: {report['store']}"]
        if report["invitation_url"]:
            lines.append(f"{report['owner']} becomes its owner through this link: {report['invitation_url']}")
        elif report["owner"]:
            lines.append(f"{report['owner']} is its owner.")
        return "\n".join(lines)


def _account_of(email: str):
    validate_email(email)
    return get_user_model().objects.filter(email__iexact=email).first()


def _invitation_link(tenant, email: str) -> str:
    invitation = invitations.invite(tenant, email, Role.OWNER)
    return own_address(reverse("tenants:invitation_page", args=[invitation.token]))
