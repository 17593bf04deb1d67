"""Addresses of models and their training data, below /<tenant_slug>/."""

from django.urls import path

from models_app import conflict_views, edit_views, exchange_views, training_views, views

app_name = "models_app"

MODEL = "models/<slug:model_slug>/"
SNIPPET = f"{MODEL}snippets/<int:pk>/"

urlpatterns = [
    path("", views.model_list, name="model_list"),
    path("new-model/", views.model_new, name="model_new"),
    path(f"{MODEL}status/", views.model_status, name="model_status"),
    path(f"{MODEL}behaviour/", views.behaviour, name="behaviour"),
    path(f"{MODEL}behaviour/questionnaire/", views.questionnaire, name="questionnaire"),
    path(f"{MODEL}delete/", views.model_delete, name="model_delete"),
    path(MODEL, training_views.training_data, name="training_data"),
    path(f"{MODEL}snippets/", training_views.snippet_table, name="snippet_table"),
    path(f"{MODEL}snippets/new/", edit_views.snippet_add, name="snippet_add"),
    path(f"{MODEL}snippets/tokens/", edit_views.snippet_tokens, name="snippet_tokens"),
    path(f"{MODEL}snippets/pages/", training_views.snippet_pages, name="snippet_pages"),
    path(f"{MODEL}snippets/delete/", training_views.snippets_delete, name="snippets_delete"),
    path(f"{MODEL}snippets/export/", exchange_views.snippets_export, name="snippets_export"),
    path(SNIPPET, training_views.snippet, name="snippet"),
    path(f"{SNIPPET}edit/", edit_views.snippet_edit, name="snippet_edit"),
    path(f"{SNIPPET}delete/", training_views.snippet_delete, name="snippet_delete"),
    path(f"{SNIPPET}conflict/", conflict_views.snippet_conflict, name="snippet_conflict"),
    path(f"{SNIPPET}history/", conflict_views.snippet_history, name="snippet_history"),
    path(f"{SNIPPET}restore/", conflict_views.snippet_restore, name="snippet_restore"),
    path(f"{MODEL}vectorise/", training_views.vectorise, name="vectorise"),
    path(f"{MODEL}vectorise/progress/", training_views.vectorise_progress, name="vectorise_progress"),
    path(f"{MODEL}vectorise/stop/", training_views.vectorise_stop, name="vectorise_stop"),
]
