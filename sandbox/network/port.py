"""The way out of one container: its proxy, which listens on the loopback of the container's network namespace.

No program inside passes bytes on, so any image will do, and no program can end the way out of the others.
"""

from __future__ import annotations

import ctypes
import os
import socket
import threading

from sandbox.errors import SandboxLost
from sandbox.network.gate import PORT, proxy_variables
from sandbox.network.policy import Policy
from sandbox.network.proxy import Attempt, Proxy

_CLONE_NEWNET = 0x40000000
_BACKLOG = 64
_libc = ctypes.CDLL(None, use_errno=True)


class Port:
    """Open until closed.

    Args:
        init: host pid of the container's first process, which has started no program yet.
        policy: what is allowed.

    Raises:
        SandboxLost: the container's network namespace cannot be entered, or its loopback is down.
    """

    def __init__(self, init: int, policy: Policy) -> None:
        try:
            listener = _listen_within(f"/proc/{init}/ns/net")
        except OSError as error:
            raise SandboxLost(f"the container's loopback cannot be listened on: {error}") from error
        self._proxy = Proxy(listener, policy)
        self.env = proxy_variables()

    @property
    def attempts(self) -> list[Attempt]:
        """The newest connections that programs asked for."""
        return list(self._proxy.attempts)

    def close(self) -> None:
        """Cut every connection."""
        self._proxy.close()


def _listen_within(namespace: str) -> socket.socket:
    """Listen from a thread that lives only for it: nothing else may run in the container's network."""
    made: list[socket.socket | OSError] = []

    def go() -> None:
        try:
            fd = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if _libc.setns(fd, _CLONE_NEWNET) < 0:
                    code = ctypes.get_errno()
                    raise OSError(code, f"setns: {os.strerror(code)}", namespace)
            finally:
                os.close(fd)
            made.append(socket.create_server(("127.0.0.1", PORT), backlog=_BACKLOG))
        except OSError as error:
            made.append(error)

    thread = threading.Thread(target=go, name="sandbox-port")
    thread.start()
    thread.join()
    found = made.pop()
    if isinstance(found, OSError):
        raise found
    return found
