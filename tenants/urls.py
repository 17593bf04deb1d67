"""/workspaces/: a person's workspaces, and the invitations' links."""

from django.urls import path

from tenants import views

app_name = "tenants"
urlpatterns = [
    path("", views.tenant_list, name="tenant_list"),
    path("new/", views.tenant_new, name="tenant_new"),
    path("invitations/<str:token>/", views.invitation_page, name="invitation_page"),
]
