"""Addresses of the widget, below /widget/: its script, and what the script asks for."""

from django.urls import path, re_path

from chat import widget, widget_script

app_name = "widget"
urlpatterns = [
    path("v1.js", widget_script.script_latest, name="script_latest"),
    re_path(r"^v1-(?P<version>[0-9a-f]{16})\.js$", widget_script.script_version, name="script_version"),
    path("v1/config", widget.config, name="config"),
    path("v1/rendered", widget.rendered, name="rendered"),
    path("v1/questionnaire", widget.questionnaire, name="questionnaire"),
    path("v1/feedback", widget.feedback, name="feedback"),
    path("v1/lead", widget.lead, name="lead"),
    path("v1/challenge", widget.challenge, name="challenge"),
]
