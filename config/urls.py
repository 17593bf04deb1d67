"""The table of all address prefixes. What follows /<tenant_slug>/ is the dashboard; its first parts are reserved."""

from django.contrib import admin
from django.urls import include, path

from tenants import views as tenant_views

urlpatterns = [
    path("", tenant_views.home, name="home"),
    path("accounts/", include("allauth.urls")),
    path("staff/", admin.site.urls),
    path("workspaces/", include("tenants.urls")),
    path("v1/", include("chat.api_urls")),
    path("widget/", include("chat.widget_urls")),
    path("<slug:tenant_slug>/", include("tenants.tenant_urls")),
    path("<slug:tenant_slug>/keys/", include("models_app.key_urls")),
    path("<slug:tenant_slug>/", include("models_app.urls")),
    path("<slug:tenant_slug>/", include("crawler.urls")),
    path("<slug:tenant_slug>/", include("chat.urls")),
]
