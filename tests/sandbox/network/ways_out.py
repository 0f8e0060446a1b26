"""What every backend's allow-list is asked, over a sandbox that may reach allowed.example.com:443 alone."""

from __future__ import annotations

import socket

from sandbox import Sandbox
from tests.sandbox.conftest import python

ASK = """
import socket
def ask(data):
    s = socket.create_connection(("127.0.0.1", 3128)); s.sendall(data); return s.recv(1000).decode()
"""
REFUSALS = [
    ("CONNECT evil.example.com:443", "403", "not on the list"),
    ("CONNECT allowed.example.com:80", "403", "not on the list"),
    ("CONNECT 169.254.169.254:443", "403", "addresses are not allowed"),
    ("CONNECT localhost:443", "403", "not on the list"),
    ("GET http://allowed.example.com/", "400", "CONNECT alone"),
    ("CONNECT allowed.example.com", "400", "host:port"),
    ("nonsense", "400", "not an HTTP request"),
]
_OTHER_WAYS = """
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
print(len(open("/proc/net/dev").readlines()) - 2)
"""


def see_a_refusal(gated: Sandbox, request_line: str, status: str, says: str) -> None:
    """The proxy refuses one request with a reason."""
    done = python(gated, f"{ASK}\nprint(ask(b'{request_line} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'))")
    assert done.stdout.text.startswith(f"HTTP/1.1 {status} "), done
    assert says in done.stdout.text


def see_that_nothing_else_gets_out(gated: Sandbox) -> None:
    """No TCP, UDP, IPv6, metadata address or abstract socket is reached; the loopback is the only device."""
    with socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind("\0agent-rl-test")
        abstract.listen()
        *tries, devices = python(gated, _OTHER_WAYS).stdout.text.splitlines()
    assert len(tries) == 5
    assert "reached" not in tries
    assert devices == "1"


def see_that_programs_behave_as_without(gated: Sandbox) -> None:
    """Exit codes, input, signals and shells are what they are in a sandbox without an allow-list."""
    assert gated.exec(["absent"]).exit_code == 127
    assert gated.exec(["/etc/passwd"]).exit_code == 126
    assert gated.exec(["/bin/cat"], stdin=b"in\0put").stdout.head == b"in\0put"
    assert gated.exec(["/bin/sh", "-c", "kill -9 $$"]).exit_code == -9
    shell = gated.shell()
    assert shell.run("x=3").ok
    assert shell.run("echo $x $HTTPS_PROXY").stdout.text == "3 http://127.0.0.1:3128\n"
    shell.close()
