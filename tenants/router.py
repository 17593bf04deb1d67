"""Sends rows of the tenant apps to the active tenant's store, and all others to the control database."""

from tenants.store import TENANT_APPS, active_store


class TenantRouter:
    """Django's database router: with no tenant active, a query for a tenant's rows raises NoActiveStore."""

    def db_for_read(self, model, **hints):
        return self._database_of(model)

    def db_for_write(self, model, **hints):
        return self._database_of(model)

    def allow_relation(self, one, other, **hints):
        return self._is_tenant_row(one) == self._is_tenant_row(other)

    def allow_migrate(self, db, app_label, **hints):
        return (app_label in TENANT_APPS) == db.startswith("store_")

    def _database_of(self, model):
        return active_store().alias if model._meta.app_label in TENANT_APPS else "default"

    def _is_tenant_row(self, row):
        return row._meta.app_label in TENANT_APPS
