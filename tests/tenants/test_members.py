"""Members: roles change and people go, but an owner always stays."""

import pytest

from tenants import members
from tenants.models import Membership, Role
from tests.conftest import make_person


def membership_of(person):
    return Membership.objects.get(user=person)


def test_a_role_is_changed(acme, ann, ray):
    members.change_role(membership_of(ray), Role.EDITOR)
    assert membership_of(ray).role == Role.EDITOR


def test_the_last_owner_can_neither_step_down_nor_be_removed(acme, ann, ray):
    for change in (
        lambda: members.change_role(membership_of(ann), Role.EDITOR),
        lambda: members.remove(membership_of(ann)),
    ):
        with pytest.raises(members.LastOwner, match="somebody else an owner first"):
            change()
    assert membership_of(ann).role == Role.OWNER


def test_of_two_owners_only_one_can_go(acme, ann):
    ed = make_person("ed@acme.test", acme, Role.OWNER)
    anns, eds = membership_of(ann), membership_of(ed)  # both looked at before either goes
    members.remove(anns)
    with pytest.raises(members.LastOwner):
        members.remove(eds)


def test_an_owner_of_another_tenant_does_not_count(acme, ann, gil):
    with pytest.raises(members.LastOwner):
        members.remove(membership_of(ann))


def test_the_last_owner_may_be_made_an_owner_again(acme, ann):
    members.change_role(membership_of(ann), Role.OWNER)
    assert membership_of(ann).role == Role.OWNER
