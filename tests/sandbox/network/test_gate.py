"""Nothing leaves a sandbox but what its list names, through the proxy, to public addresses."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sandbox
from sandbox import Sandbox, SandboxSpec
from sandbox.network import Policy, Proxy
from tests.sandbox.conftest import SMALL, python
from tests.sandbox.network import ways_out

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def gated() -> Iterator[Sandbox]:
    with sandbox.create(SandboxSpec(limits=SMALL, allow=("allowed.example.com:443",))) as box:
        yield box


@pytest.mark.parametrize(("request_line", "status", "says"), ways_out.REFUSALS)
def test_the_proxy_refuses_with_a_reason(gated: Sandbox, request_line: str, status: str, says: str) -> None:
    ways_out.see_a_refusal(gated, request_line, status, says)


def test_nothing_else_gets_out(gated: Sandbox) -> None:
    ways_out.see_that_nothing_else_gets_out(gated)


def test_a_program_behind_the_gate_behaves_as_without(gated: Sandbox) -> None:
    ways_out.see_that_programs_behave_as_without(gated)


def test_closing_leaves_no_socket_and_no_thread() -> None:
    import threading

    before = threading.active_count()
    with sandbox.create(SandboxSpec(limits=SMALL, allow=("a.example.com:443",))) as box, box.fork() as child:
        assert python(child, f"{ways_out.ASK}\nprint(ask(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'))").ok
    assert threading.active_count() == before


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=400))
def test_the_proxy_survives_any_bytes(data: bytes) -> None:
    address = f"\0agent-rl-proxy-test-{os.getpid()}"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    proxy = Proxy(listener, Policy.parse(["a.example.com:443"]))
    try:
        for sent in (data, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(address)
                client.sendall(sent)
                client.shutdown(socket.SHUT_WR)
                client.settimeout(5)
                answer = client.recv(1000)
        assert answer.startswith(b"HTTP/1.1 400")
    finally:
        proxy.close()


_WORLD = """
set -e
ip link set lo up
ip addr add 1.2.3.4/32 dev lo
printf '1.2.3.4 allowed.example.com\\n10.0.0.1 private.example.com\\n' > "$1/hosts"
mount --bind "$1/hosts" /etc/hosts
exec "$2" -m tests.sandbox.network.reach "$3"
"""


def see_what_is_reached(backend: str, folder: Path) -> None:
    """Run `reach` with a backend where one public and one private name resolve, and check what it says."""
    command = ["unshare", "--net", "--mount", "sh", "-c", _WORLD, "sh", str(folder), sys.executable, backend]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "HTTP/1.1 200 Connected",
        "echo 100000",
        "HTTP/1.1 403 Refused",
        "agent-rl sandbox: private.example.com has an address that is not public",
        "ok 403",
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace with a public address needs root")
@pytest.mark.skipif(not shutil.which("ip"), reason="iproute2 is not installed")
def test_an_allowed_public_host_is_reached_and_a_private_one_is_not(tmp_path: Path) -> None:
    see_what_is_reached("bubblewrap", tmp_path)
