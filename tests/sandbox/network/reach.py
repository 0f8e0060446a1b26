"""Run in a network namespace where 1.2.3.4 is this machine: a server there, and a sandbox that may reach it.

The argument is the backend.
"""

from __future__ import annotations

import socket
import sys
import threading

import sandbox
from sandbox import SandboxSpec

_CLIENT = """
import socket
def connect(host):
    s = socket.create_connection(("127.0.0.1", 3128))
    s.sendall(f"CONNECT {host}:443 HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n".encode())
    return s, s.recv(1000).decode()
s, answer = connect("allowed.example.com")
print(answer.splitlines()[0])
s.sendall(b"x" * 100000); s.shutdown(socket.SHUT_WR)
total = 0
while data := s.recv(65536):
    total += len(data)
print("echo", total)
s, answer = connect("private.example.com")
print(answer.splitlines()[0]); print(answer.splitlines()[-1])
"""


def _echo(server: socket.socket) -> None:
    client, _ = server.accept()
    with client:
        while data := client.recv(65536):
            client.sendall(data)


def main() -> None:
    """Print what the sandbox saw."""
    with socket.create_server(("1.2.3.4", 443)) as server:
        threading.Thread(target=_echo, args=(server,), daemon=True).start()
        allow = ("allowed.example.com:443", "private.example.com:443")
        with sandbox.create(SandboxSpec(allow=allow), sys.argv[1]) as box:
            done = box.exec(["/usr/bin/python3", "-I", "-S", "-c", _CLIENT])
            print(done.stdout.text, end="")
            print(done.reason, *[403 for a in box.attempts if a.verdict != "ok"])  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
