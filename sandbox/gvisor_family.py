"""The two host users of a gVisor family, and the user namespace in which they are 0 and 1000."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from sandbox.errors import SandboxUnavailable
from sandbox.family import Family
from sandbox.launch import INNER_ID
from sandbox.machine import Machine

_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C"}


class GvisorFamily(Family):
    """A family whose `uid` owns the files and whose `runner` runs runsc.

    Two, so that a program inside owns its files as user 1000 while runsc is root of the namespace, which it must be.

    Attributes:
        namespace: Descriptor of the user namespace.

    Raises:
        OSError: no ids are free.
        SandboxUnavailable: the namespace cannot be made.
    """

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self.namespace = -1
        self.runner: int | None = None
        try:
            assert machine.uids is not None
            self.runner = machine.uids.claim()
            machine.ledger.record("uid", str(self.runner))
            self.namespace = self._make_namespace(self.runner)
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        if self.namespace >= 0:
            os.close(self.namespace)
        if self.runner is not None and self._machine.uids is not None:
            self._machine.uids.release(self.runner)
        super()._end()

    def _make_namespace(self, runner: int) -> int:
        """Made by the family's own user, so that its bubblewrap may enter; mapped by root, which alone can map two."""
        become = [self._machine.tools.setpriv, "--reuid", str(self.uid), "--regid", str(self.uid)]
        with subprocess.Popen(
            [*become, "--clear-groups", "/usr/bin/unshare", "--user", "/bin/cat"],
            cwd="/",
            env=_ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as holder:
            assert holder.stdin is not None
            assert holder.stdout is not None
            try:
                holder.stdin.write(b"?")
                holder.stdin.flush()
                if holder.stdout.read(1) != b"?":  # cat answers once it is in there
                    raise OSError("unshare --user failed")
                for kind in ("uid", "gid"):
                    ids = f"0 {runner} 1\n{INNER_ID} {self.uid} 1\n"
                    Path(f"/proc/{holder.pid}/{kind}_map").write_text(ids)
                return os.open(f"/proc/{holder.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
            except OSError as error:
                raise SandboxUnavailable(f"no user namespace of two ids can be made: {error}") from error
            finally:
                holder.kill()
