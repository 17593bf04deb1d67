"""Addresses of the public API, below /v1/."""

from django.urls import re_path

from chat import api

app_name = "api"
urlpatterns = [
    re_path(r"^chat/completions/?$", api.chat_completions, name="chat_completions"),
    re_path(r"^models/?$", api.model_list, name="model_list"),
    re_path(r"^models/(?P<model_slug>[^/]+)/?$", api.model_detail, name="model_detail"),
    re_path(r"^", api.unknown_address, name="unknown_address"),
]
