"""Makes the environments of the peers: what they need comes from PyPI, and stays out of ours."""

import subprocess
import sys
import venv
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
PLACE = PROJECT / "var" / "peers" / "environments"
REQUIREMENTS = Path(__file__).parent / "requirements"
SECONDS = 1_200  # to install one group


class NotInstalled(Exception):
    """An environment could not be made; says why."""


def python_of(environment: str) -> Path:
    """Return the Python of an environment, which is made if it is not there; raises NotInstalled."""
    wanted = (REQUIREMENTS / f"{environment}.txt").read_text()
    folder = PLACE / environment
    python, made = folder / "bin" / "python", folder / "made-of.txt"
    if made.exists() and made.read_text() == wanted:
        return python
    print(f"installing {environment} from PyPI", flush=True)
    venv.create(folder, with_pip=True, symlinks=True)
    install = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "-r", "/dev/stdin"]
    try:
        subprocess.run(install, input=wanted, text=True, capture_output=True, check=True, timeout=SECONDS)
    except subprocess.CalledProcessError as error:
        raise NotInstalled((error.stderr.strip().splitlines() or ["pip said nothing"])[-1]) from error
    except subprocess.TimeoutExpired as error:
        raise NotInstalled(f"took over {SECONDS} seconds") from error
    made.write_text(wanted)
    return python


def own_python() -> Path:
    return Path(sys.executable)
