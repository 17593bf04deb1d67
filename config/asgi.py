"""The web application, as an ASGI server runs it."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = get_asgi_application()

from models_app.llm import load_client  # noqa: E402 - models need the application

load_client()
