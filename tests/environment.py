"""Loaded before Django's settings: tests have a data folder of their own, and may reach servers on loopback."""

import atexit
import os
import shutil
import tempfile

_folder = tempfile.mkdtemp(prefix="sitewise-tests-")
atexit.register(shutil.rmtree, _folder, ignore_errors=True)

for _name in [name for name in os.environ if name.startswith("SITEWISE_") or name == "CELERY_BROKER_URL"]:
    if _name not in ("SITEWISE_REQUIRE_ALL", "SITEWISE_MODELS_DIR"):
        del os.environ[_name]
os.environ |= {
    "SITEWISE_DATA_DIR": _folder,
    "SITEWISE_ALLOW_LOOPBACK": "1",
    "SITEWISE_EMAIL_URL": "memory://",
    "SITEWISE_CRAWL_DELAY_SECONDS": "0",
    "DJANGO_ALLOW_ASYNC_UNSAFE": "1",
}
