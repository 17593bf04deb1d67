"""The tenants' commands: one JSON document on standard output, and one clear line when it goes wrong."""

import io
import json
import os
import subprocess
import sys

import pytest
from django.core.management import CommandError, call_command

from models_app.models import MLModel
from tenants.models import Invitation, Membership, Role, Tenant
from tenants.store import activated, delete_store, store_of
from tests.conftest import PROJECT
from tests.tenants.test_installation import break_store


def run(command: str, *arguments, **options):
    """Return what the command printed, as JSON."""
    out = io.StringIO()
    call_command(command, *arguments, json=True, stdout=out, **options)
    return json.loads(out.getvalue())


def test_create_tenant_makes_a_tenant_with_its_store(db):
    report = run("create_tenant", "bakery", name="The Bakery")
    tenant = Tenant.objects.get()
    assert report["slug"] == "bakery" and report["name"] == tenant.name == "The Bakery"
    assert report["store"] == str(store_of(tenant).path)
    with activated(tenant):
        assert not MLModel.objects.exists()
    delete_store(tenant)


def test_create_tenant_makes_an_account_its_owner(ann):
    run("create_tenant", "bakery", owner="ANN@acme.test")
    membership = Membership.objects.get(tenant__slug="bakery")
    assert (membership.user, membership.role) == (ann, Role.OWNER)
    delete_store(membership.tenant)


def test_create_tenant_invites_an_owner_without_an_account(db):
    report = run("create_tenant", "bakery", owner="bo@bakery.test")
    invitation = Invitation.objects.get()
    assert (invitation.email, invitation.role) == ("bo@bakery.test", Role.OWNER)
    assert report["invitation_url"].startswith("http://127.0.0.1:8000/workspaces/invitations/")
    assert invitation.token in report["invitation_url"]
    delete_store(invitation.tenant)


@pytest.mark.parametrize(("slug", "reason"), [("acme", "taken"), ("staff", "reserved"), ("Bad Slug", "lower-case")])
def test_create_tenant_says_why_a_slug_will_not_do(acme, slug, reason):
    with pytest.raises(CommandError, match=reason):
        run("create_tenant", slug)
    assert Tenant.objects.count() == 1


def test_create_tenant_refuses_an_owner_that_is_no_address(db):
    with pytest.raises(CommandError, match="email"):
        run("create_tenant", "bakery", owner="Bo")
    assert not Tenant.objects.exists()


def test_migrate_tenants_reports_the_failing_and_does_the_others(acme, globex):
    break_store(acme)
    out = io.StringIO()
    with pytest.raises(CommandError, match="acme: its tables could not be brought up to date"):
        call_command("migrate_tenants", json=True, stdout=out)
    report = json.loads(out.getvalue())
    assert report["ready"] == ["globex"]
    assert [failed["slug"] for failed in report["failed"]] == ["acme"]


def test_backup_tenant_copies_the_store(support, acme, tmp_path):
    report = run("backup_tenant", "acme", to=tmp_path / "copy.sqlite3")
    assert report == {"slug": "acme", "file": str(tmp_path / "copy.sqlite3"), "bytes": report["bytes"]}
    assert (tmp_path / "copy.sqlite3").stat().st_size == report["bytes"] > 0


def test_backup_tenant_overwrites_nothing(acme, tmp_path):
    (tmp_path / "copy.sqlite3").write_text("precious")
    with pytest.raises(CommandError, match="is there already"):
        run("backup_tenant", "acme", to=tmp_path / "copy.sqlite3")
    assert (tmp_path / "copy.sqlite3").read_text() == "precious"


def test_a_back_up_of_a_missing_store_fails_in_one_line(acme):
    delete_store(acme)
    with pytest.raises(CommandError, match="The data of tenant acme cannot be opened: its file is missing"):
        run("backup_tenant", "acme")


def test_delete_tenant_removes_all_and_names_the_back_ups_left(acme):
    backup = run("backup_tenant", "acme")["file"]
    path = store_of(acme).path
    report = run("delete_tenant", "acme", yes=True)
    assert report == {"slug": "acme", "is_deleted": True, "backups_left": [backup]}
    assert not path.exists() and not Tenant.objects.exists()


def test_delete_tenant_wants_to_be_confirmed(acme):
    with pytest.raises(CommandError, match="confirm"):
        run("delete_tenant", "acme")
    assert store_of(acme).path.exists()


@pytest.mark.parametrize("command", ["backup_tenant", "delete_tenant"])
def test_an_unknown_tenant_is_named(command, db):
    with pytest.raises(CommandError, match="There is no tenant “nobody”"):
        run(command, "nobody")


def manage(folder, *arguments):
    """Return the ended process of manage.py, run on a data folder of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DJANGO_")}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=PROJECT,
        env=environment | {"SITEWISE_DATA_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_on_an_empty_data_folder_a_command_makes_what_is_missing(tmp_path):
    done = manage(tmp_path, "create_tenant", "acme", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["slug"] == "acme"
    assert done.stdout.count("\n") == 1 and done.stderr == ""
    assert (tmp_path / "stores" / "1.sqlite3").exists()
    # Nobody else on the machine reads them.
    assert (tmp_path / "secret_key").stat().st_mode & 0o077 == 0
    assert (tmp_path / "stores" / "1.sqlite3").stat().st_mode & 0o077 == 0

    again = manage(tmp_path, "create_tenant", "acme", "--json")
    assert again.returncode == 1
    assert again.stdout == ""
    assert again.stderr.strip().splitlines() == ["CommandError: This address is taken: choose another one."]


def test_a_control_database_that_is_none_is_one_clear_line(tmp_path):
    (tmp_path / "control.sqlite3").write_bytes(b"not a database, however long it is" * 100)
    done = manage(tmp_path, "migrate_tenants", "--json")
    assert done.returncode == 1 and done.stdout == ""
    place = tmp_path / "control.sqlite3"
    assert done.stderr.strip() == f"CommandError: The control database {place} cannot be used: file is not a database."
