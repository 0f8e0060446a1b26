"""The shell's own pipes; what shells promise stands in `sandbox.conformance.shells`."""

from __future__ import annotations

import contextlib
import subprocess
import sys

from sandbox import Sandbox


def test_commands_have_no_foreign_descriptor(box: Sandbox) -> None:
    with contextlib.closing(box.shell()) as shell:
        assert shell.run("/bin/ls /proc/self/fd").stdout.text == "0\n1\n2\n3\n"


_FEW_DESCRIPTORS = """
import contextlib, os, sandbox
for _ in range(12):
    with sandbox.create() as box, contextlib.closing(box.shell()) as shell:
        assert shell.run("cd /tmp; x=1; echo err >&2").stderr.text == "err\\n"
        assert shell.run("pwd; echo $x").stdout.text == "/tmp\\n1\\n"
    os.open("/dev/null", os.O_RDONLY)
"""


def test_state_survives_whatever_descriptors_the_harness_has_open() -> None:
    # In a process of its own, where the shell's pipes get low numbers: bash uses 10 and above itself.
    done = subprocess.run(
        [sys.executable, "-c", _FEW_DESCRIPTORS], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
