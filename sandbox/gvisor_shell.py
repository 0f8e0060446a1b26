"""A stateful bash under gVisor, with the protocol of `sandbox.shell`.

Runsc hands a program no descriptor beyond three. So the notice pipe is a named one, in a folder that only this shell's
gVisor shows; bash opens it before it reads its first command.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence

from sandbox.gvisor_bundle import NOTICES
from sandbox.gvisor_programs import GvisorPrograms
from sandbox.machine import Machine
from sandbox.process import Process
from sandbox.removal import remove_tree
from sandbox.shell import BASH, NOTICE, BubblewrapShell

_PIPE = "notice"
_COMMAND = (*BASH.split(), "-c", f"exec {BASH} -s {NOTICE}>{NOTICES}/{_PIPE}")


class GvisorShell(BubblewrapShell):
    """See `BubblewrapShell`. Programs in the shell can reach the notice pipe too, and gain as little by it."""

    def __init__(
        self,
        machine: Machine,
        uid: int,
        programs: GvisorPrograms,
        workspace: Callable[[], Sequence[str]],
        closed: Callable[[BubblewrapShell], None],
    ) -> None:
        self._machine, self._uid, self._runner = machine, uid, programs
        self._folder = f"notices-{secrets.token_hex(8)}"
        os.mkdir(self._folder, 0o755, dir_fd=machine.base_fd)
        try:
            os.chmod(self._folder, 0o755, dir_fd=machine.base_fd)  # root's: no program may make a file in it
            super().__init__(programs, workspace, closed)
        except BaseException:
            self._remove()
            raise

    def close(self) -> None:
        """Kill the shell and all that it started."""
        super().close()
        self._remove()

    def _start(self) -> Process:
        pipe, base_fd = f"{self._folder}/{_PIPE}", self._machine.base_fd
        if self._notice >= 0:  # a new one, which no program of the last shell can hold
            os.unlink(pipe, dir_fd=base_fd)
        os.mkfifo(pipe, 0o600, dir_fd=base_fd)
        os.chown(pipe, self._uid, self._uid, dir_fd=base_fd, follow_symlinks=False)
        ours = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=base_fd)
        try:
            shown = os.path.join(self._machine.base, self._folder)
            self._process = self._runner.start(_COMMAND, self._workspace(), with_stdin=True, notices=shown)
        except BaseException:
            os.close(ours)
            raise
        self._process.pipes.extra.append(ours)
        self._notice = ours
        return self._process

    def _remove(self) -> None:
        remove_tree(self._folder, dir_fd=self._machine.base_fd)
