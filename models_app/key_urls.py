"""/<tenant_slug>/keys/: a workspace's API keys."""

from django.urls import path

from models_app import key_views

app_name = "keys"
urlpatterns = [
    path("", key_views.key_list, name="key_list"),
    path("table/", key_views.key_table, name="key_table"),
    path("new/", key_views.key_new, name="key_new"),
    path("<int:pk>/edit/", key_views.key_edit, name="key_edit"),
    path("<int:pk>/revoke/", key_views.key_revoke, name="key_revoke"),
]
