"""Changes of who is a member and what they may do. A tenant always keeps an owner."""

from django.db import transaction

from tenants.models import Membership, Role


class LastOwner(Exception):
    """The change would leave the tenant without an owner."""

    def __init__(self):
        super().__init__("This is the last owner: make somebody else an owner first.")


def change_role(membership: Membership, role: Role) -> None:
    """Give the member another role; raises LastOwner."""
    with transaction.atomic():  # noqa: TID251  the control database
        if role != Role.OWNER:
            _refuse_last_owner(membership)
        membership.role = role
        membership.save(update_fields=["role"])


def remove(membership: Membership) -> None:
    """End the membership; raises LastOwner."""
    with transaction.atomic():  # noqa: TID251  the control database
        _refuse_last_owner(membership)
        membership.delete()


def _refuse_last_owner(membership: Membership) -> None:
    membership.refresh_from_db(fields=["role"])
    others = Membership.objects.filter(tenant_id=membership.tenant_id, role=Role.OWNER).exclude(pk=membership.pk)
    if membership.role == Role.OWNER and not others.exists():
        raise LastOwner
