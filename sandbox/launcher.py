"""The thread that mounts and starts processes, in a mount namespace of its own where that is allowed.

Three things need it. Mounts made here are invisible to the rest of the machine and vanish with the process, however
it dies. `bwrap --die-with-parent` follows the *thread* that started it, and this thread lives as long as the process.
And `subprocess` can use `vfork`, whose cost does not grow with the harness's memory.
"""

from __future__ import annotations

import ctypes
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from sandbox.errors import SandboxClosed

T = TypeVar("T")

_CLONE_NEWNS = 0x00020000
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_SLAVE = 2, 4, 0x4000, 1 << 19
_MNT_DETACH = 2


class Launcher:
    """Runs functions one after the other in its own thread.

    `private` tells whether that thread has its own mount namespace, which needs CAP_SYS_ADMIN.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="sandbox-launcher", daemon=True)
        self._thread.start()
        self.private: bool = self.call(self._go_private)

    def call(self, job: Callable[[], T]) -> T:
        """Run `job` in the thread and return its result or raise its error.

        Raises:
            SandboxClosed: called in a forked child of the harness.
        """
        if threading.current_thread() is self._thread:
            return job()
        if self._pid != os.getpid():  # the thread was not copied by fork, and nobody would answer
            raise SandboxClosed(f"this sandbox belongs to process {self._pid}; create another in this one")
        future: Future[T] = Future()
        self._jobs.put((job, future))
        return future.result()

    def stop(self) -> None:
        """End the thread; what it mounted is gone once nothing else uses it."""
        self._jobs.put(None)
        self._thread.join(5.0)

    def mount_tmpfs(self, path: str, *, size_bytes: int, inodes: int, mode: int) -> None:
        """Mount a bounded tmpfs; call it from within `call`.

        Raises:
            OSError: as mount(2).
        """
        options = f"size={size_bytes},nr_inodes={inodes},mode={mode:o}".encode()
        self._check(
            self._libc.mount(b"sandbox", os.fsencode(path), b"tmpfs", _MS_NOSUID | _MS_NODEV, options),
            "mount",
            path,
        )

    def mount_overlay(self, path: str, *, lower: list[str], upper: str, work: str) -> None:
        """Mount folders over one another, with marks that bubblewrap's overlays read too; call it from within `call`.

        Raises:
            OSError: as mount(2).
        """
        options = f"userxattr,lowerdir={':'.join(lower)},upperdir={upper},workdir={work}".encode()
        flags = _MS_NOSUID | _MS_NODEV
        self._check(
            self._libc.mount(b"overlay", os.fsencode(path), b"overlay", flags, options), "mount", path
        )

    def unmount(self, path: str) -> None:
        """Detach a mount; call it from within `call`."""
        self._check(self._libc.umount2(os.fsencode(path), _MNT_DETACH), "umount2", path)

    def _go_private(self) -> bool:
        if self._libc.unshare(_CLONE_NEWNS) != 0:
            return False
        # Slave, so that a disk unmounted on the host is not held by the copy in this namespace.
        self._check(self._libc.mount(b"none", b"/", None, _MS_REC | _MS_SLAVE, None), "mount", "/")
        return True

    def _serve(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, future = item
            try:
                future.set_result(job())
            except BaseException as error:  # noqa: BLE001 - handed to the caller, who waits for it
                future.set_exception(error)
            del job, future, item

    @staticmethod
    def _check(result: int, call: str, path: str) -> None:
        if result != 0:
            code = ctypes.get_errno()
            raise OSError(code, f"{call}: {os.strerror(code)}", path)
