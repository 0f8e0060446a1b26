"""One build, watched: its output as it comes, and its end when it takes too long, prints too much or fills the disk.

The programs of RUN are confined as the engine confines any container: root with Docker's default capabilities and
filter, in the user namespace that the engine maps, if it maps one. They get bounded memory, no network unless asked
for, and a bounded number of processes in a control group that all builds of an engine share.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import urllib3
from docker.types import CancellableStream

from sandbox.docker_daemon import Daemon
from sandbox.errors import ImageError, SandboxLost

GROUP = "agent-rl-build"
_PROCESSES = 4096
_LOOK_S = 0.5
_MAX_LOG_BYTES, _KEPT_LOG_CHARS, _MAX_LINE = 16 << 20, 16384, 4096
_FAULTS = (
    docker.errors.DockerException,
    urllib3.exceptions.HTTPError,
    OSError,
    ValueError,
)  # a stream that was cut raises any of these


class Watched:
    """Runs one build."""

    def __init__(
        self, engine: Daemon, timeout_s: float, disk_bytes: int, progress: Callable[[str], None]
    ) -> None:
        self._engine, self._timeout_s, self._disk_bytes, self._progress = (
            engine,
            timeout_s,
            disk_bytes,
            progress,
        )
        self._log: deque[str] = deque()
        self._log_chars = self._log_bytes = 0
        self._why = ""
        self._over = threading.Event()
        self._response: Any = None
        self._image = self._error = ""

    def build(self, options: dict[str, Any]) -> str:
        """The id of the image.

        Args:
            options: for the SDK's `build`.

        Raises:
            ImageError: a step failed, or a limit was met.
            SandboxLost: the daemon failed.
        """
        client = self._engine.new_client(self._timeout_s + _LOOK_S)
        client.params = (
            {"cgroupparent": _group()} if self._engine.info.get("CgroupDriver") == "cgroupfs" else {}
        )
        client.hooks["response"].append(self._keep)
        watch = threading.Thread(target=self._watch, name="sandbox-image-watch", daemon=True)
        watch.start()
        failure: BaseException | None = None
        try:
            self._follow(client.build(**options, decode=True))
        except docker.errors.APIError as error:
            self._error = str(error.explanation)
        except _FAULTS as error:
            failure = error
        finally:
            self._over.set()
            watch.join()
            self._hang_up()  # which ends the build if it still runs
            if self._response is not None:
                self._response.close()
            client.close()
        log = "\n".join(self._log)
        if self._why or self._error:
            raise ImageError(f"the image was not built: {self._why or self._error[:500]}", log)
        if failure is not None or not self._image:
            raise SandboxLost(
                f"docker: a build ended without an image: {failure or 'no message'}"
            ) from failure
        return self._image

    def _keep(self, response: Any, *args: object, **kwargs: object) -> None:
        del args, kwargs
        self._response = response

    def _follow(self, events: Iterator[Any]) -> None:
        for event in events:
            if not isinstance(event, dict):
                continue
            if "error" in event:
                self._error = str(event["error"])
                self._note(self._error)
            if isinstance(event.get("aux"), dict) and "ID" in event["aux"]:
                self._image = str(event["aux"]["ID"])
            if text := event.get("stream"):
                self._note(str(text))
            if self._why:
                return

    def _note(self, text: str) -> None:
        self._log_bytes += len(text)
        if self._log_bytes > _MAX_LOG_BYTES:
            self._why = f"it printed more than {_MAX_LOG_BYTES} bytes"
        for line in text.splitlines():
            shown = line[:_MAX_LINE]
            self._log.append(shown)
            self._log_chars += len(shown) + 1
            while self._log_chars > _KEPT_LOG_CHARS and len(self._log) > 1:
                self._log_chars -= len(self._log.popleft()) + 1
            self._progress(shown)

    def _watch(self) -> None:
        until, room = time.monotonic() + self._timeout_s, self._room()
        while not self._over.wait(_LOOK_S):
            if time.monotonic() > until:
                self._why = f"it took longer than {self._timeout_s:g} s; raise timeout_s"
            elif room - self._room() > self._disk_bytes:
                self._why = f"the engine's disk lost {self._disk_bytes} bytes meanwhile; raise disk_bytes"
            if self._why:
                self._hang_up()
                return

    def _room(self) -> int:
        try:
            seen = os.statvfs(str(self._engine.info["DockerRootDir"]))
        except OSError:
            return 0
        return seen.f_bavail * seen.f_frsize

    def _hang_up(self) -> None:
        if self._response is not None:
            with contextlib.suppress(*_FAULTS, AttributeError):  # it has ended already
                CancellableStream(iter(()), self._response).close()


def _group() -> str:
    """The control group of all builds, whose processes are bounded; it is made once and stays."""
    for base in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup"):
        folder = Path(base, GROUP)
        if Path(base).is_dir():
            try:
                folder.mkdir(exist_ok=True)
                (folder / "pids.max").write_text(str(_PROCESSES))
            except OSError as error:
                raise ImageError(
                    f"builds need a control group, and {folder} cannot be made: {error}"
                ) from error
            return f"/{GROUP}"
    raise ImageError("builds need the pids control group, which is not mounted at /sys/fs/cgroup")
