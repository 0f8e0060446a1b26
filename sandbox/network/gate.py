"""The way out of one sandbox: its proxy, where the sandbox sees the socket, and how programs are started behind it."""

from __future__ import annotations

import inspect
import itertools
import os
import socket
from collections.abc import Sequence

from sandbox.errors import SandboxUnavailable
from sandbox.launcher import Launcher
from sandbox.network import forward
from sandbox.network.policy import Policy
from sandbox.network.proxy import Attempt, Proxy

_INSIDE = "/run/agent-rl-proxy"
PORT = 3128
"""Of the sandbox's loopback."""
_PYTHON = "/usr/bin/python3"
_BACKLOG = 64
_numbers = itertools.count(1)


class Gate:
    """Open until closed; forks have gates of their own.

    Args:
        launcher: whose mount namespace holds `base`.
        base: folder for the socket.
        policy: what is allowed.

    Raises:
        SandboxUnavailable: the forwarder's interpreter is missing.
    """

    def __init__(self, launcher: Launcher, base: str, policy: Policy) -> None:
        if not os.access(_PYTHON, os.X_OK):
            raise SandboxUnavailable(
                f"an allow-list needs {_PYTHON} in the sandbox; install Debian's python3"
            )
        self._launcher, self._path = launcher, os.path.join(base, f"proxy-{next(_numbers):x}")
        self._proxy = Proxy(launcher.call(self._listen), policy)
        self.env = proxy_variables()
        self.mounts = ("--bind", self._path, _INSIDE)
        """Arguments that show the socket in the sandbox."""

    @property
    def attempts(self) -> list[Attempt]:
        """The newest connections that programs asked for."""
        return list(self._proxy.attempts)

    def wrap(self, argv: Sequence[str]) -> list[str]:
        """The command that listens on the sandbox's loopback and becomes `argv`."""
        python = [_PYTHON, "-I", "-S", "-c", inspect.getsource(forward)]
        return [*python, _INSIDE, str(PORT), *argv]

    def close(self) -> None:
        """Cut every connection and remove the socket."""
        self._proxy.close()
        self._launcher.call(lambda: os.unlink(self._path))

    def _listen(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self._path)
        os.chmod(self._path, 0o666)  # programs run under another user id
        listener.listen(_BACKLOG)
        return listener


def proxy_variables() -> dict[str, str]:
    """What tells programs of the proxy."""
    address = f"http://127.0.0.1:{PORT}"
    return dict.fromkeys(("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"), address)
