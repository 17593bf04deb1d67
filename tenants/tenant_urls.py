"""/<tenant_slug>/members/: who belongs to a workspace."""

from django.urls import path

from tenants import member_views

app_name = "tenant"
urlpatterns = [
    path("members/", member_views.member_list, name="member_list"),
    path("members/table/", member_views.member_table, name="member_table"),
    path("members/invite/", member_views.member_invite, name="member_invite"),
    path("members/leave/", member_views.member_leave, name="member_leave"),
    path("members/<int:pk>/edit/", member_views.member_edit, name="member_edit"),
    path("members/<int:pk>/remove/", member_views.member_remove, name="member_remove"),
    path("members/invitations/<int:pk>/resend/", member_views.invitation_resend, name="invitation_resend"),
    path("members/invitations/<int:pk>/revoke/", member_views.invitation_revoke, name="invitation_revoke"),
]
