from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from sandbox import Sandbox, SandboxClosed, Shell
from tests.sandbox.conftest import needs


@pytest.fixture
def shell(box: Sandbox) -> Iterator[Shell]:
    with contextlib.closing(box.shell()) as opened:
        yield opened


def out(shell: Shell, command: str) -> str:
    return shell.run(command).stdout.text


def test_directory_variables_and_functions_survive(shell: Shell) -> None:
    assert shell.run("mkdir -p a/b && cd a/b; x='1 2'; declare -a list=(p q); f() { echo \"f:$1\"; }").ok
    assert out(shell, 'pwd; echo "$x" "${list[1]}"; f z') == "/workspace/a/b\n1 2 q\nf:z\n"


def test_streams_and_exit_codes(shell: Shell) -> None:
    result = shell.run("echo out; echo err >&2; (exit 5)")
    assert (result.exit_code, result.reason) == (5, "ok")
    assert (result.stdout.text, result.stderr.text) == ("out\n", "err\n")
    assert shell.run("(kill -KILL $BASHPID)").exit_code == -9
    assert shell.run("").exit_code == 0


@pytest.mark.parametrize(
    "command", ["if", "echo 'open", "(", "cat <<X\nline", "break", "continue", "return 3", "}"]
)
def test_broken_commands_do_not_desynchronise(shell: Shell, command: str) -> None:
    shell.run("y=kept")
    assert shell.run(command, timeout_s=5).reason == "ok"
    assert out(shell, "echo next $y").startswith("next")


def test_commands_of_any_text(shell: Shell) -> None:
    assert (
        out(shell, "cat <<'X'\nit's \"$x\" `y` \\ é\nX\necho $((1+1)) # 'comment")
        == 'it\'s "$x" `y` \\ é\n2\n'
    )
    assert (
        out(shell, "echo " + "x" * 50_000) == "x" * 1000 + "\n... [48001 bytes cut] ...\n" + "x" * 999 + "\n"
    )
    with pytest.raises(ValueError, match="NUL"):
        shell.run("a\0b")


def test_commands_have_no_input_and_no_foreign_descriptor(shell: Shell) -> None:
    assert out(shell, "cat; read x; echo $?") == "1\n"
    assert out(shell, "/bin/ls /proc/self/fd") == "0\n1\n2\n3\n"


def test_timeout_restarts_the_shell(box: Sandbox, shell: Shell) -> None:
    shell.run("x=lost; echo file > kept; sleep 61.71 &")
    result = shell.run("echo begun; sleep 60", timeout_s=0.4)
    assert (result.exit_code, result.reason, result.stdout.text) == (None, "timeout", "begun\n")
    assert out(shell, "echo [$x]; cat kept; pgrep -c sleep") == "[]\nfile\n0\n"


def test_exit_ends_the_shell_and_the_next_command_has_a_new_one(shell: Shell) -> None:
    result = shell.run("x=1; echo bye; exit 7")
    assert (result.exit_code, result.reason, result.stdout.text) == (7, "ok", "bye\n")
    assert out(shell, "echo [$x]") == "[]\n"
    assert shell.run("set -e; false").exit_code == 1
    assert out(shell, "echo again") == "again\n"
    assert shell.run("exec /bin/echo replaced").stdout.text == "replaced\n"
    assert shell.run("kill -KILL $$").exit_code == -9
    assert out(shell, "echo again") == "again\n"


def test_flood_is_killed(shell: Shell) -> None:
    assert shell.run("yes").reason == "output"
    assert out(shell, "echo fine") == "fine\n"


def test_background_output_does_not_block_the_next_command(shell: Shell) -> None:
    assert shell.run("yes &").reason in ("ok", "output")
    time.sleep(0.05)
    assert shell.run("echo here; kill %1", timeout_s=10).reason in ("ok", "output")


def test_memory_and_process_totals_hold_in_a_shell(shell: Shell) -> None:
    needs("memory_total", "processes")
    assert shell.run("/usr/bin/python3 -I -S -c 'x = bytearray(200 << 20)'").reason == "oom"
    code = "import os\\nfor _ in range(60):\\n  if os.fork() == 0: __import__('time').sleep(60)"
    assert (
        shell.run(f"/usr/bin/python3 -I -S -c $'{code.replace(chr(39), chr(92) + chr(39))}'").reason == "pids"
    )


def test_two_shells_share_files_but_not_state(box: Sandbox, shell: Shell) -> None:
    with contextlib.closing(box.shell()) as other:
        shell.run("x=1; echo shared > f; echo private > /tmp/f")
        assert out(other, "echo [$x]; cat f; cat /tmp/f 2>/dev/null; :") == "[]\nshared\n"
        box.write("g", b"from the host")
        assert out(shell, "cat g") == "from the host"
        assert box.exec(["/bin/cat", "f"]).stdout.text == "shared\n"


def test_close_of_shell_and_sandbox(box: Sandbox) -> None:
    shell = box.shell()
    shell.close()
    shell.close()
    with pytest.raises(SandboxClosed):
        shell.run("true")


def test_closing_the_sandbox_ends_a_running_command(box: Sandbox) -> None:
    fork = box.fork()
    shell = fork.shell()
    reasons: list[str] = []
    thread = threading.Thread(target=lambda: reasons.append(shell.run("sleep 60").reason))
    thread.start()
    time.sleep(0.2)
    fork.close()
    thread.join(10)
    assert reasons == ["killed"]
    with pytest.raises(SandboxClosed):
        shell.run("true")


def test_shell_survives_the_thread_that_opened_it(box: Sandbox) -> None:
    shells: list[Shell] = []
    thread = threading.Thread(target=lambda: shells.append(box.shell()))
    thread.start()
    thread.join()
    time.sleep(0.1)
    assert out(shells[0], "echo alive") == "alive\n"
    shells[0].close()


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
