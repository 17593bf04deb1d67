"""The operator's list of tenants, with what each one holds and used: numbers of the apps that tenants may not know."""

from django.contrib import admin
from django.db.models import Sum
from django.utils import timezone

from chat.models import QuestionCount
from models_app.models import TrainingSnippet
from tenants.admin import TenantAdmin
from tenants.models import Tenant
from tenants.store import StoreNotReady, activated

NOT_READY = "not ready"


@admin.register(Tenant)
class MeasuredTenantAdmin(TenantAdmin):
    list_display = ["name", "slug", "size", "snippets", "questions", "is_suspended", "created_at"]
    readonly_fields = ["size", "snippets", "questions"]
    fields = [*TenantAdmin.fields, *readonly_fields]

    @admin.display(description="Snippets")
    def snippets(self, tenant):
        return self._used_of(tenant, "snippets", tenant.snippet_quota)

    @admin.display(description="Questions this month")
    def questions(self, tenant):
        return self._used_of(tenant, "questions", tenant.question_quota)

    def _used_of(self, tenant, name, quota):
        if not tenant.pk:
            return "-"
        # Both columns of a row are read in one visit to its store.
        if not hasattr(tenant, "figures"):
            tenant.figures = _figures(tenant)
        return f"{tenant.figures[name]:,} of {quota:,}" if tenant.figures else NOT_READY


def _figures(tenant: Tenant) -> dict[str, int]:
    """Return how many snippets the tenant holds and questions it asked this month; empty when its store is closed."""
    month = timezone.localdate().replace(day=1)
    try:
        with activated(tenant):
            asked = QuestionCount.objects.filter(month=month)
            return {
                "snippets": TrainingSnippet.objects.count(),
                "questions": asked.aggregate(total=Sum("count"))["total"] or 0,
            }
    except StoreNotReady:
        return {}
