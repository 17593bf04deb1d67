"""Addresses of imports, below /<tenant_slug>/."""

from django.urls import path

from crawler import page_views, upload_views, views

app_name = "crawler"

MODEL = "models/<slug:model_slug>/"
IMPORTS = f"{MODEL}imports/"
IMPORT = f"{IMPORTS}<int:pk>/"
PAGE = f"{MODEL}pages/<int:pk>/"

urlpatterns = [
    path(IMPORTS, views.import_list, name="import_list"),
    path(f"{IMPORTS}new/", views.import_dialog, name="import_dialog"),
    path(f"{IMPORTS}pages/", views.pages_dialog, name="pages_dialog"),
    path(f"{IMPORTS}files/", upload_views.upload_dialog, name="upload_dialog"),
    path(f"{IMPORTS}files/preview/", upload_views.upload_preview, name="upload_preview"),
    path(f"{IMPORTS}files/start/", upload_views.upload_start, name="upload_start"),
    path(f"{IMPORTS}files/discard/", upload_views.upload_discard, name="upload_discard"),
    path(f"{IMPORTS}split/", views.split_again, name="split_again"),
    path(IMPORT, page_views.import_report, name="import_report"),
    path(f"{IMPORT}job/", views.import_job, name="import_job"),
    path(f"{IMPORT}progress/", views.import_progress, name="import_progress"),
    path(f"{IMPORT}stop/", views.import_stop, name="import_stop"),
    path(f"{IMPORT}pause/", views.import_pause, name="import_pause"),
    path(f"{IMPORT}resume/", views.import_resume, name="import_resume"),
    path(f"{IMPORT}retry/", views.import_retry, name="import_retry"),
    path(f"{IMPORT}pages/", page_views.page_table, name="page_table"),
    path(PAGE, page_views.page_report, name="page_report"),
    path(f"{PAGE}dropped/", page_views.page_dropped, name="page_dropped"),
    path(f"{PAGE}outline/", page_views.page_outline, name="page_outline"),
]
