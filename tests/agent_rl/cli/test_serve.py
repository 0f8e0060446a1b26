from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def serve(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "agent_rl.cli", "serve", "sandbox", *options]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, cwd=ROOT, env={**os.environ, **environment}
    )


def test_a_taken_port_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = serve("--port", str(port))
    assert done.returncode == 2
    assert done.stderr.startswith(f"agent-rl: port {port} of 127.0.0.1 is taken")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--host", "0.0.0.0"], "needs a token"),
        (["--backend", "local"], "not served"),
        (["--backend", "nonsense"], "no sandbox backend 'nonsense'"),
        (["--base", "python"], "NAME=WHAT"),
        (["--token-file", "/no/such/file"], "No such file"),
    ],
)
def test_mistakes_are_one_sentence(options: list[str], sentence: str) -> None:
    done = serve("--port", "0", *options)
    assert (done.returncode, sentence in done.stderr) == (2, True), done.stderr
    assert done.stderr.count("\n") == 1


def test_a_short_token_is_refused_and_not_shown() -> None:
    done = serve("--host", "0.0.0.0", "--port", "0", AGENT_RL_SANDBOX_TOKEN="hunter2")
    assert done.returncode == 2
    assert "at least 32" in done.stderr
    assert "hunter2" not in done.stderr
