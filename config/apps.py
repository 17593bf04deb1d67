from django.apps import AppConfig


class SitewiseConfig(AppConfig):
    name = "config"
    verbose_name = "Sitewise"

    def ready(self):
        from config import celery  # noqa: F401  the tasks of all apps belong to this worker application
