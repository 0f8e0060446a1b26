"""The pipes of a shell in a container, which do not lead through the daemon.

Docker hands a program no descriptor beyond three, and what comes on those passes through other processes: it may
arrive long after the program wrote it. So a shell has four named pipes in a folder that no program can list. They lose
their names once bash has opened them, before it is given the first command, and are reached by its descriptors alone
from then on, as elsewhere. What a command wrote is there when its notice is.
"""

from __future__ import annotations

import contextlib
import os
import secrets

from sandbox.shell import NOTICE

_MODES = {"stdin": "0<", "stdout": ">", "stderr": "2>", "notice": f"{NOTICE}>"}


class ShellPipes:
    """Four named pipes for the programs of `uid`, and this process's ends, which do not block.

    Attributes:
        redirections: What makes a shell use them.

    Args:
        folder: Descriptor of the container's `/run`.
    """

    def __init__(self, folder: int, uid: int) -> None:
        self._folder, self._named, self._ends = folder, list[str](), dict[str, int]()
        words = []
        try:
            for name, sign in _MODES.items():
                path = secrets.token_hex(16)
                os.mkfifo(path, 0o600, dir_fd=folder)
                self._named.append(path)
                os.chown(path, uid, -1, dir_fd=folder, follow_symlinks=False)
                # Read and write: the other end comes and goes, and this one neither waits for it nor sees it hang up.
                flags = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
                self._ends[name] = os.open(path, flags, dir_fd=folder)
                words.append(f"{sign}/run/{path}")
        except BaseException:
            self.close()
            raise
        self.redirections = " ".join(words)

    @property
    def stdin(self) -> int:
        """Where the shell's script goes."""
        return self._ends["stdin"]

    @property
    def stdout(self) -> int:
        """What it writes."""
        return self._ends["stdout"]

    @property
    def stderr(self) -> int:
        """What it complains."""
        return self._ends["stderr"]

    @property
    def notice(self) -> int:
        """Which command is over."""
        return self._ends["notice"]

    def hide(self) -> None:
        """Take their names away; safe to call twice."""
        named, self._named = self._named, []
        for path in named:
            os.unlink(path, dir_fd=self._folder)

    def close(self) -> None:
        """Close this process's ends; safe to call twice."""
        ends, self._ends = self._ends, {}
        with contextlib.ExitStack() as last:
            last.callback(self.hide)
            for fd in ends.values():
                last.callback(os.close, fd)
