"""What the backends of this machine share: a workspace of layers in a family, open shells, and an orderly end."""

from __future__ import annotations

import contextlib
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from sandbox import files, flatten
from sandbox.base import Shell
from sandbox.errors import SandboxBusy, SandboxClosed, SandboxError, SandboxLost
from sandbox.family import Family, Snapshot
from sandbox.layers import Layer, Stack
from sandbox.machine import Machine
from sandbox.types import CapabilityReport, SandboxSpec

_CLOSE_WAIT_S = 30.0


class LayeredSandbox(ABC):
    """Half of `sandbox.base.Sandbox`: files, snapshots, forks and `close`; a backend adds how programs run.

    A backend's constructor calls this one, makes what it needs, and closes itself when that fails.
    """

    def __init__(
        self, machine: Machine, spec: SandboxSpec, report: CapabilityReport, family: Family | None
    ) -> None:
        self.machine, self._spec, self._report = machine, spec, report
        self.limits = spec.limits
        self._busy, self._lock = threading.RLock(), threading.Lock()
        self._shells: list[Shell] = []
        self._closed = False
        self._family = family.acquire() if family else Family(machine)
        self._stack: Stack | None = None
        machine.live.add(self.close)

    @abstractmethod
    def _relative(self, layers: tuple[Layer, ...]) -> Self:
        """A new sandbox of the family over these layers."""

    @abstractmethod
    def _show(self) -> None:
        """Make the present stack what programs see."""

    @abstractmethod
    def _hide(self) -> None:
        """Take the stack from the programs' sight, so that its layers can be changed."""

    @abstractmethod
    def _stop(self) -> None:
        """Kill what runs and refuse what comes; called from any thread, and also when construction failed."""

    @abstractmethod
    def _release(self, last: contextlib.ExitStack) -> None:
        """Push what is to be given back; the last pushed goes first."""

    @property
    def capabilities(self) -> CapabilityReport:
        """What this backend can enforce on this machine."""
        return self._report

    def read(self, path: str, *, max_bytes: int = 1 << 20) -> bytes:
        """Read a regular file beneath the workspace; see `files.read`."""
        with self._roots() as roots:
            return files.read(roots, path, max_bytes)

    def write(self, path: str, data: bytes) -> None:
        """Write a regular file beneath the workspace; see `files.write`."""
        with self._roots() as roots:
            files.write(roots, path, data, self._family.uid)

    def fill(self) -> Self:
        """Write the files of the spec, and close when one does not fit."""
        try:
            for path, data in self._spec.files.items():
                self.write(path, data)
        except BaseException:
            self.close()
            raise
        return self

    def snapshot(self) -> Snapshot:
        """Freeze the files: cheap when nothing changed since the last time.

        Raises:
            SandboxBusy: a shell is open.
        """
        with self._busy:
            return Snapshot(self._family, self._freeze())

    def restore(self, snapshot: object) -> None:
        """Put the files back to a snapshot of this sandbox or of a relative.

        Raises:
            SandboxBusy: a shell is open.
            SandboxError: the snapshot was released, or is of another family.
        """
        with self._busy:
            stack = self._quiet_stack()
            if not isinstance(snapshot, Snapshot) or snapshot.family is not self._family:
                raise SandboxError(
                    "the snapshot is not of this sandbox or a relative; take one here or in a fork"
                )
            self._stack = self._stacked(snapshot.layers)
            self._hide()
            stack.close()
            self._show()

    def fork(self) -> Self:
        """A new sandbox with the same files.

        Raises:
            SandboxBusy: a shell is open.
        """
        with self._busy:
            layers = self._freeze()
            try:
                return self._relative(layers)
            finally:
                for layer in layers:
                    layer.release()

    def close(self) -> None:
        """Kill everything and remove everything; safe to call twice and from another thread."""
        if self.machine.pid != os.getpid():  # a forked child of the harness does not own it
            return
        with self._lock:
            closed, self._closed = self._closed, True
        self._stop()
        if closed:
            return
        if not self._busy.acquire(timeout=_CLOSE_WAIT_S):
            raise SandboxLost(f"a program is still running {_CLOSE_WAIT_S} s after its sandbox was killed")
        try:
            with contextlib.ExitStack() as last:
                last.callback(self.machine.live.discard, self.close)
                last.callback(self._family.release)
                self._release(last)
                for shell in list(self._shells):
                    last.callback(shell.close)
        finally:
            self._busy.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _stacked(self, layers: tuple[Layer, ...]) -> Stack:
        return Stack(self.machine, self._family.uid, self.limits.workspace_bytes, layers)

    def _open_stack(self) -> Stack:
        if self._closed or self._stack is None:
            raise SandboxClosed("the sandbox was closed; create another")
        if self.machine.pid != os.getpid():
            raise SandboxClosed(
                f"this sandbox belongs to process {self.machine.pid}; create another in this one"
            )
        return self._stack

    def _quiet_stack(self) -> Stack:
        stack = self._open_stack()
        if self._shells:
            raise SandboxBusy(f"{len(self._shells)} shells are open; close them first")
        return stack

    def _roomy_stack(self) -> Stack:
        """The stack, flattened if a program filled it: those that follow must start."""
        stack = self._open_stack()
        if not self._shells and stack.is_cramped():
            self._hide()
            try:
                self._flatten(stack, len(stack.frozen))
            finally:
                self._show()
        return stack

    def _freeze(self) -> tuple[Layer, ...]:
        stack = self._quiet_stack()
        if stack.upper.is_empty():
            return stack.freeze()
        self._hide()  # an overlay must not lie over what another one reads
        try:
            if deep := stack.to_merge():
                self._flatten(stack, deep)
            return stack.freeze()
        finally:
            self._show()

    def _flatten(self, stack: Stack, merged: int) -> None:
        """Copy the writable layer and the `merged` nearest frozen ones into one."""
        flatten.merge(stack, merged, self._family.uid)

    def _disk_full(self) -> bool:
        return self._stack is not None and self._stack.is_full()

    def _forget_shell(self, shell: Shell) -> None:
        with self._lock:
            if shell in self._shells:
                self._shells.remove(shell)

    @contextlib.contextmanager
    def _roots(self) -> Iterator[list[int]]:
        with self._busy:
            roots = self._open_stack().open()
            try:
                yield roots
            finally:
                for fd in roots:
                    os.close(fd)
