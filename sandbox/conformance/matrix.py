"""Backends by cases, as one page: each column is measured in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from sandbox.conformance.report import Case, CheckReport

_ROOT = Path(__file__).resolve().parents[2]
_USER_ID = 65533
_DOCKER_SOCKET = "/var/run/docker.sock"
_CELLS = {"pass": "yes", "fail": "**no**", "unenforceable": "–"}
_HEAD = """# What each sandbox backend holds

Made by `agent-rl check sandbox:matrix`. "yes": the case passed; "–": it cannot be enforced there, for the reason given
below, and people have reviewed that; "**no**": it failed.

"""


def columns() -> dict[str, list[str]]:
    """What can run on this machine: the command that prints a column's report, by the column's name."""
    here = [sys.executable, "-m", "sandbox.conformance"]
    found = {"bubblewrap (root)" if os.geteuid() == 0 else "bubblewrap (user)": [*here, "bubblewrap"]}
    setpriv = shutil.which("setpriv", path="/usr/bin:/bin")
    if os.geteuid() == 0 and setpriv:
        identity = ["--reuid", str(_USER_ID), "--regid", str(_USER_ID), "--clear-groups", "--no-new-privs"]
        # The interpreter of Debian: the one that runs this may lie in a folder that only root can enter.
        python = ["/usr/bin/python3", "-m", "sandbox.conformance", "bubblewrap"]
        found["bubblewrap (user)"] = [setpriv, *identity, *python]
    engine = os.environ.get("DOCKER_HOST") or f"unix://{_DOCKER_SOCKET}"
    if os.geteuid() == 0 and Path(engine.removeprefix("unix://")).is_socket():
        found["docker (root)"] = [*here, f"docker:{engine}"]
    return found


def measure(command: list[str], progress: Callable[[str], None] = lambda name: None) -> CheckReport:
    """Run one column.

    Raises:
        RuntimeError: the process ended without a report; the message ends with what it said.
    """
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/tmp",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join([str(_ROOT), *site.getsitepackages()]),
    }
    said: list[str] = []
    with subprocess.Popen(
        command, cwd="/", env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        for line in process.stderr:
            said.append(line)
            progress(line.strip())
        text = process.stdout.read()
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: {''.join(said[-10:])}")
    data = json.loads(text)
    return CheckReport(target=data["target"], cases=tuple(Case(**case) for case in data["cases"]))


def page(reports: Mapping[str, CheckReport]) -> str:
    """The matrix in Markdown, with the reasons of what is not enforced."""
    names = list(dict.fromkeys(case.name for report in reports.values() for case in report.cases))
    cells = {column: {case.name: case for case in report.cases} for column, report in reports.items()}
    lines = [f"| case | {' | '.join(reports)} |", f"|---|{'---|' * len(reports)}"]
    for name in names:
        row = [_CELLS[cells[column][name].status] if name in cells[column] else "" for column in reports]
        lines.append(f"| {name} | {' | '.join(row)} |")
    for column, by_name in cells.items():
        reasons = [f"* {c.name}: {_short(c.reason)}" for c in by_name.values() if c.status != "pass"]
        if reasons:
            lines += ["", f"## {column}", "", *reasons]
    return _HEAD + "\n".join(lines) + "\n"


def _short(reason: str) -> str:
    """Without what differs from run to run: paths of this process's groups."""
    return reason.partition(": [Errno")[0].replace("\n", " ")[:300]
