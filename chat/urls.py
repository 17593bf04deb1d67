"""Addresses of the Test tab and of History, below /<tenant_slug>/."""

from django.urls import path

from chat import views

app_name = "chat"

MODEL = "models/<slug:model_slug>/"
TURN = f"{MODEL}history/<int:pk>/"

urlpatterns = [
    path(f"{MODEL}test/", views.test, name="test"),
    path(f"{MODEL}test/results/", views.test_results, name="test_results"),
    path(f"{MODEL}test/answer/", views.test_answer, name="test_answer"),
    path(f"{MODEL}history/", views.history, name="history"),
    path(f"{MODEL}history/turns/", views.turn_table, name="turn_table"),
    path(TURN, views.turn, name="turn"),
    path(f"{TURN}conversation/", views.conversation, name="conversation"),
    path(f"{TURN}review/", views.turn_review, name="turn_review"),
]
