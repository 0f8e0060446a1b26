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

ROOT = Path(__file__).resolve().parents[3]
_ASK = """
import socket
def ask(data):
    s = socket.create_connection(("127.0.0.1", 3128)); s.sendall(data); return s.recv(1000).decode()
"""


@pytest.fixture(scope="module")
def gated() -> Iterator[Sandbox]:
    with sandbox.create(SandboxSpec(limits=SMALL, allow=("allowed.example.com:443",))) as box:
        yield box


@pytest.mark.parametrize(
    ("request_line", "status", "says"),
    [
        ("CONNECT evil.example.com:443", "403", "not on the list"),
        ("CONNECT allowed.example.com:80", "403", "not on the list"),
        ("CONNECT 169.254.169.254:443", "403", "addresses are not allowed"),
        ("CONNECT localhost:443", "403", "not on the list"),
        ("GET http://allowed.example.com/", "400", "CONNECT alone"),
        ("CONNECT allowed.example.com", "400", "host:port"),
        ("nonsense", "400", "not an HTTP request"),
    ],
)
def test_the_proxy_refuses_with_a_reason(gated: Sandbox, request_line: str, status: str, says: str) -> None:
    done = python(gated, f"{_ASK}\nprint(ask(b'{request_line} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'))")
    assert done.stdout.text.startswith(f"HTTP/1.1 {status} "), done
    assert says in done.stdout.text


def test_nothing_else_gets_out(gated: Sandbox) -> None:
    code = """
import socket
def tried(*kind, to):
    try:
        with socket.socket(*kind) as s:
            s.settimeout(2); s.connect(to); s.send(b"x"); s.recv(1)
        return "reached"
    except OSError as error:
        return type(error).__name__
print(tried(socket.AF_INET, socket.SOCK_STREAM, to=("8.8.8.8", 53)))
print(tried(socket.AF_INET, socket.SOCK_DGRAM, to=("8.8.8.8", 53)))
print(tried(socket.AF_INET, socket.SOCK_STREAM, to=("169.254.169.254", 80)))
print(tried(socket.AF_INET6, socket.SOCK_STREAM, to=("2606:4700::1111", 443)))
print(tried(socket.AF_UNIX, socket.SOCK_STREAM, to="\\0agent-rl-test"))
"""
    with socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind("\0agent-rl-test")
        abstract.listen()
        assert "reached" not in python(gated, code).stdout.text


def test_a_program_behind_the_gate_behaves_as_without(gated: Sandbox) -> None:
    assert gated.exec(["absent"]).exit_code == 127
    assert gated.exec(["/etc/passwd"]).exit_code == 126
    assert gated.exec(["/bin/cat"], stdin=b"in\0put").stdout.head == b"in\0put"
    assert gated.exec(["/bin/sh", "-c", "kill -9 $$"]).exit_code == -9
    shell = gated.shell()
    assert shell.run("x=3").ok
    assert shell.run("echo $x $HTTPS_PROXY").stdout.text == "3 http://127.0.0.1:3128\n"
    shell.close()


def test_closing_leaves_no_socket_and_no_thread() -> None:
    import threading

    before = threading.active_count()
    with sandbox.create(SandboxSpec(limits=SMALL, allow=("a.example.com:443",))) as box, box.fork() as child:
        assert python(child, f"{_ASK}\nprint(ask(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'))").ok
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
exec "$2" -m tests.sandbox.network.reach
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace with a public address needs root")
@pytest.mark.skipif(not shutil.which("ip"), reason="iproute2 is not installed")
def test_an_allowed_public_host_is_reached_and_a_private_one_is_not(tmp_path: Path) -> None:
    command = ["unshare", "--net", "--mount", "sh", "-c", _WORLD, "sh", str(tmp_path), sys.executable]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "HTTP/1.1 200 Connected",
        "echo 100000",
        "HTTP/1.1 403 Refused",
        "agent-rl sandbox: private.example.com has an address that is not public",
        "ok 403",
    ]
