"""What the shell of bubblewrap does beyond the contract, which `sandbox.conformance` tries."""

from __future__ import annotations

import contextlib
import subprocess
import sys

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox import Sandbox

_EVERY_DESCRIPTOR = """
import contextlib, os, sandbox
def fill(below):
    held = []
    while (fd := os.open("/dev/null", os.O_RDONLY)) < below:
        held.append(fd)
    os.close(fd)
    return held
def free(held):
    for fd in held: os.close(fd)
first = fill(40)  # what the harness keeps open for itself lies above
sandbox.create().close()
free(first)
for theirs in (*range(4, 16), 62, 63, 254, 255, 256):
    with sandbox.create() as box:
        above = fill(40) if theirs > 40 else []
        held = fill(theirs - 1)
        with contextlib.closing(box.shell()) as shell:
            assert shell._notice == theirs - 1, (shell._notice, theirs)
            assert shell.run("cd /tmp; x=1; echo err >&2").stderr.text == "err\\n"
            assert shell.run("pwd; echo $x").stdout.text == "/tmp\\n1\\n"
        free(held + above)
"""


def test_state_survives_whatever_descriptors_the_harness_has_open() -> None:
    # In a process of its own, where the other end of the notice pipe can be any number: bash uses 10 and above itself.
    command = [sys.executable, "-c", _EVERY_DESCRIPTOR]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None
)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60))
def test_any_text_is_a_command(box: Sandbox, command: str) -> None:
    with contextlib.closing(box.shell()) as shell:
        assert shell.run(command, timeout_s=5).reason != "sandbox_lost"
        assert shell.run("echo next", timeout_s=20).reason == "ok"


def test_the_end_is_told_whatever_a_command_does_to_the_shell(box: Sandbox) -> None:
    commands = {
        "echo $((1 / 0))": 1,
        ": ${gone:?}": 1,  # ends the shell
        "return 3": 2,
        "echo 'open": 2,
        "set -a": 0,
        "! env | grep -q ^__c": 0,  # what the harness says to bash is not exported
        "export LC_ALL=C; printf ü | wc -c | grep -qx 2": 0,
        "IFS=_c; true": 0,
        "eval() { :; }; read() { :; }; printf() { :; }": 0,
        "false": 1,
    }
    with contextlib.closing(box.shell()) as shell:
        for command, code in commands.items():
            result = shell.run(command, timeout_s=10)
            assert (result.exit_code, result.reason) == (code, "ok"), (command, result.stderr.text)
