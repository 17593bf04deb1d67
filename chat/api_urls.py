"""Addresses of the public API, below /v1/."""

from django.urls import path, re_path

from chat import api, dify, openapi_views

app_name = "api"
urlpatterns = [
    re_path(r"^chat/completions/?$", api.chat_completions, name="chat_completions"),
    re_path(r"^models/?$", api.model_list, name="model_list"),
    re_path(r"^models/(?P<model_slug>[^/]+)/?$", api.model_detail, name="model_detail"),
    re_path(r"^chat-messages/?$", dify.chat_messages, name="dify_chat_messages"),
    re_path(r"^messages/(?P<message_id>[^/]+)/feedbacks/?$", dify.message_feedback, name="dify_feedback"),
    re_path(r"^parameters/?$", dify.parameters, name="dify_parameters"),
    path("openapi.json", openapi_views.document, name="openapi"),
    path("reference", openapi_views.reference, name="reference"),
    re_path(r"^", api.unknown_address, name="unknown_address"),
]
