"""Addresses of imports, below /<tenant_slug>/."""

from django.urls import path

from crawler import views

app_name = "crawler"

MODEL = "models/<slug:model_slug>/"
IMPORTS = f"{MODEL}imports/"
IMPORT = f"{IMPORTS}<int:pk>/"

urlpatterns = [
    path(IMPORTS, views.import_list, name="import_list"),
    path(f"{IMPORTS}new/", views.import_dialog, name="import_dialog"),
    path(IMPORT, views.import_report, name="import_report"),
    path(f"{IMPORT}job/", views.import_job, name="import_job"),
    path(f"{IMPORT}progress/", views.import_progress, name="import_progress"),
    path(f"{IMPORT}stop/", views.import_stop, name="import_stop"),
    path(f"{IMPORT}pages/", views.page_table, name="page_table"),
    path(f"{MODEL}pages/<int:pk>/", views.page_report, name="page_report"),
]
