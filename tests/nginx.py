"""Debian's nginx before an address, with its default buffering, as an operator would set it up."""

import getpass
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_SECONDS = 20
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
# What Debian's nginx.conf says where it matters here: gzip on, proxy_buffering at its default, which is on.
CONFIGURATION = """
daemon off;
{user}
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 200; }}
http {{
    access_log off;
    gzip on;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass {upstream};
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header X-Forwarded-Proto $scheme;
        }}
    }}
}}
"""


@contextmanager
def nginx_before(upstream: str, folder: Path) -> Iterator[str]:
    """Run nginx as a proxy before an address while the block does; yields nginx' own address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    user = "user root;" if getpass.getuser() == "root" else ""
    configuration = folder / "nginx.conf"
    configuration.write_text(CONFIGURATION.format(user=user, folder=folder, port=port, upstream=upstream))
    server = subprocess.Popen([NGINX, "-p", str(folder), "-e", f"{folder}/error.log", "-c", str(configuration)])
    try:
        _wait_for(port, server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(START_SECONDS)


def _wait_for(port: int, server: subprocess.Popen) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        assert server.poll() is None and time.monotonic() < end, "nginx did not start"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
