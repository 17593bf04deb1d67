"""Addresses of the Test, Embed and History tabs, below /<tenant_slug>/."""

from django.urls import path

from chat import embed_views, trial_views, views

app_name = "chat"

MODEL = "models/<slug:model_slug>/"
TURN = f"{MODEL}history/<int:pk>/"

urlpatterns = [
    path(f"{MODEL}test/", trial_views.test, name="test"),
    path(f"{MODEL}test/results/", trial_views.test_results, name="test_results"),
    path(f"{MODEL}test/snippets/", trial_views.test_snippets, name="test_snippets"),
    path(f"{MODEL}test/why-not/<int:pk>/", trial_views.test_why_not, name="test_why_not"),
    path(f"{MODEL}test/save/", trial_views.test_save, name="test_save"),
    path(f"{MODEL}test/answer/", trial_views.test_answer, name="test_answer"),
    path(f"{MODEL}embed/", embed_views.embed, name="embed"),
    path(f"{MODEL}embed/code/", embed_views.embed_code, name="embed_code"),
    path(f"{MODEL}embed/preview/", embed_views.embed_preview, name="embed_preview"),
    path(f"{MODEL}embed/key/", embed_views.embed_key, name="embed_key"),
    path(f"{MODEL}history/", views.history, name="history"),
    path(f"{MODEL}history/turns/", views.turn_table, name="turn_table"),
    path(f"{MODEL}history/e-mails/", views.lead_list, name="lead_list"),
    path(f"{MODEL}history/e-mails/<int:pk>/erase/", views.lead_erase, name="lead_erase"),
    path(TURN, views.turn, name="turn"),
    path(f"{TURN}conversation/", views.conversation, name="conversation"),
    path(f"{TURN}answers/erase/", views.answers_erase, name="answers_erase"),
    path(f"{TURN}review/", views.turn_review, name="turn_review"),
]
