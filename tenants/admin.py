"""The operator's pages under /staff/: tenants with their members, invitations and keys. Numbers are added in config."""

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.template.defaultfilters import filesizeformat

from tenants import installation
from tenants.models import ApiKey, Invitation, Membership
from tenants.store import store_size_bytes

admin.site.site_header = admin.site.site_title = "Sitewise: operator's pages"
admin.site.index_title = "Installation"
admin.site.enable_nav_sidebar = False
# Through the login page of everybody, whose limits hold off the guessing of passwords.
admin.site.login = secure_admin_login(admin.site.login)


class MembershipInline(admin.TabularInline):
    model = Membership
    extra = 0
    autocomplete_fields = ["user"]

    def get_queryset(self, request):
        return super().get_queryset(request).select_related("user", "tenant")


class InvitationInline(admin.TabularInline):
    """Open invitations, which the operator may withdraw; their links are their owners' to pass on."""

    model = Invitation
    extra = 0
    fields = readonly_fields = ["email", "role", "expires_at"]

    def has_add_permission(self, request, obj=None):
        return False


class ApiKeyInline(admin.TabularInline):
    """Keys as they are listed: nothing a key could be guessed or made from."""

    model = ApiKey
    extra = 0
    fields = readonly_fields = [
        "name",
        "kind",
        "prefix",
        "model_slugs",
        "allowed_origins",
        "last_used_at",
        "revoked_at",
    ]

    def has_add_permission(self, request, obj=None):
        return False

    def has_delete_permission(self, request, obj=None):
        return False


class TenantAdmin(admin.ModelAdmin):
    """Tenants and what the operator may do with them: suspend, set quotas, make, delete with everything they own."""

    list_display = ["name", "slug", "size", "is_suspended", "created_at"]
    list_filter = ["is_suspended"]
    list_per_page = 50
    search_fields = ["slug", "name", "memberships__user__email"]
    fields = ["name", "slug", "is_suspended", "snippet_quota", "question_quota"]
    inlines = [MembershipInline, InvitationInline, ApiKeyInline]
    actions = ["suspend", "let_in_again"]

    @admin.display(description="Size on disk")
    def size(self, tenant):
        return filesizeformat(store_size_bytes(tenant))

    @admin.action(description="Suspend: nobody gets in, no key works", permissions=["change"])
    def suspend(self, request, queryset):
        self.message_user(request, f"{queryset.update(is_suspended=True)} suspended.")

    @admin.action(description="Let in again", permissions=["change"])
    def let_in_again(self, request, queryset):
        self.message_user(request, f"{queryset.update(is_suspended=False)} let in again.")

    def save_model(self, request, obj, form, change):
        if change:
            super().save_model(request, obj, form, change)
        else:
            installation.add_tenant(obj)

    def delete_model(self, request, obj):
        installation.delete_tenant(obj)

    def delete_queryset(self, request, queryset):
        for tenant in queryset:
            installation.delete_tenant(tenant)
