"""The Docker Engine: bounded calls through its SDK, streams on connections of their own, and the base image."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import socket
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker

from sandbox.docker_labels import VERSION
from sandbox.errors import SandboxLost, SandboxUnavailable
from sandbox.launch import ACCOUNTS

CALL_S = 60.0
"""How long one call to the daemon may take."""
_CALLS = 2 * (os.cpu_count() or 1)
_FAULTS = (docker.errors.DockerException, OSError)  # what `requests` raises is an OSError too
_FOLDERS = ("dev", "etc", "proc", "run", "sbin", "sys", "tmp", "usr", "workspace")
_LINKS = ("bin", "lib", "lib32", "lib64", "libx32")
_COPIED_ETC = ("ld.so.cache", "mime.types")


class Daemon:
    """One Docker Engine on this machine, reached by a Unix socket.

    Args:
        address: `unix://...`; empty for the SDK's environment (`DOCKER_HOST`, else the default socket).

    Raises:
        SandboxUnavailable: it is not there, or not on this machine.
    """

    def __init__(self, address: str) -> None:
        url = address or os.environ.get("DOCKER_HOST", "") or "unix:///var/run/docker.sock"
        if not url.startswith("unix://"):
            raise SandboxUnavailable(
                f"docker at {url!r} is not on this machine, and sandboxes need its kernel; give unix:///path/to/socket"
            )
        self.pid, self._slots = os.getpid(), threading.BoundedSemaphore(_CALLS)
        self._path = "/" + url.removeprefix("unix://").lstrip("/")
        self.url = f"unix://{self._path}"
        self._images: dict[str, str] = {}
        self._guard = threading.Lock()
        try:
            with socket.socket(socket.AF_UNIX) as probe:  # the SDK leaves its socket open when nobody listens
                probe.connect(self._path)
            self.api = docker.APIClient(base_url=url, timeout=CALL_S, version=VERSION, num_pools=_CALLS)
            self.info: dict[str, Any] = self.api.info()
        except _FAULTS as error:
            raise SandboxUnavailable(
                f"no Docker Engine answers at {url}: {error}; start dockerd, or give docker:unix:///path/to/socket"
            ) from error

    @contextlib.contextmanager
    def call(self, what: str) -> Iterator[Any]:
        """The SDK's client for one call; at most twice as many as there are cores run at a time.

        Raises:
            SandboxLost: the call failed or took too long; `what` says what was tried.
        """
        with self._slots:
            try:
                yield self.api
            except _FAULTS as error:
                raise SandboxLost(f"docker: {what} failed: {error}") from error

    def open_stream(self, path: str, body: dict[str, Any]) -> tuple[socket.socket, bytes]:
        """Start what becomes a two-way stream; returns it with the bytes that came behind the answer's head.

        The SDK loses those bytes when the program is quick, so this has a connection of its own.

        Raises:
            SandboxLost: the daemon refuses, or is gone.
        """
        data = json.dumps(body).encode()
        head = (
            f"POST /v{self.api.api_version}{path} HTTP/1.1\r\nHost: docker\r\nContent-Type: application/json\r\n"
            f"Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with self._slots:
                stream.settimeout(CALL_S)
                stream.connect(self._path)
                stream.sendall(head.encode() + data)
                answer = b""
                while b"\r\n\r\n" not in answer:
                    if not (chunk := stream.recv(65536)) or len(answer) > 1 << 20:
                        raise SandboxLost(f"docker: no answer to {path}: {answer[:300]!r}")
                    answer += chunk
            head_bytes, _, rest = answer.partition(b"\r\n\r\n")
            if head_bytes.split(b" ", 2)[1] not in (b"101", b"200"):
                raise SandboxLost(f"docker: {path} was refused: {answer[:500]!r}")
            stream.setblocking(False)
        except BaseException as error:
            stream.close()
            if isinstance(error, OSError):
                raise SandboxLost(f"docker: {path} failed: {error}") from error
            raise
        return stream, rest

    def remove(self, container: str) -> None:
        """Kill and remove a container; nothing happens when it is gone, or going.

        Raises:
            SandboxLost: the daemon failed.
        """
        with self.call("removing a container") as api:
            try:
                api.remove_container(container, force=True)
            except docker.errors.APIError as error:
                if error.status_code not in (404, 409):
                    raise

    def image(self, base: str) -> str:
        """Id of the image called `base`, or of the one that only holds mount points and accounts.

        Raises:
            SandboxUnavailable: there is no such image; none is downloaded.
        """
        with self._guard:
            if base not in self._images:
                self._images[base] = self._find(base) if base else self._make_base()
            return self._images[base]

    def know(self, name: str, image: str) -> None:
        """Note which image a name means, whatever others do to the name."""
        with self._guard:
            self._images[name] = image

    def new_client(self, timeout_s: float) -> Any:
        """A client of its own for a call that takes long; the caller closes it."""
        return docker.APIClient(base_url=f"unix://{self._path}", timeout=timeout_s, version=VERSION)

    def _find(self, name: str) -> str:
        try:
            with self._slots:
                return str(self.api.inspect_image(name)["Id"])
        except docker.errors.ImageNotFound as error:
            raise SandboxUnavailable(f"docker has no image {name!r}; run: docker pull {name}") from error
        except _FAULTS as error:
            raise SandboxLost(f"docker: looking for image {name!r} failed: {error}") from error

    def _make_base(self) -> str:
        data = _base_archive()
        tag = hashlib.sha256(data).hexdigest()[:16]
        with contextlib.suppress(SandboxUnavailable):
            return self._find(f"agent-rl-base:{tag}")
        with self.call("making the base image") as api:
            api.import_image_from_data(data, repository="agent-rl-base", tag=tag)
        return self._find(f"agent-rl-base:{tag}")


def _base_archive() -> bytes:
    """Mount points, the machine's links into /usr, and accounts; the same bytes for the same machine."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name in _FOLDERS:
            _add(tar, name, tarfile.DIRTYPE)
        for name in _LINKS:
            if Path("/", name).is_symlink():
                _add(tar, name, tarfile.SYMTYPE, link=os.readlink(f"/{name}"))
        for name, text in ACCOUNTS.items():
            _add(tar, f"etc/{name}", tarfile.REGTYPE, text.encode())
        for name in _COPIED_ETC:
            if Path("/etc", name).is_file():
                _add(tar, f"etc/{name}", tarfile.REGTYPE, Path("/etc", name).read_bytes())
        _add(tar, "etc/alternatives", tarfile.DIRTYPE)
        for path in sorted(Path("/etc/alternatives").glob("*")):
            if path.is_symlink():
                _add(tar, f"etc/alternatives/{path.name}", tarfile.SYMTYPE, link=os.readlink(path))
    return file.getvalue()


def _add(tar: tarfile.TarFile, name: str, kind: bytes, data: bytes = b"", link: str = "") -> None:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(data)
    info.mode = 0o755 if kind == tarfile.DIRTYPE else 0o644
    tar.addfile(info, io.BytesIO(data))


_daemons: dict[str, Daemon] = {}
_guard = threading.Lock()


def daemon(address: str) -> Daemon:
    """This process's connection to a daemon, made at the first call.

    Raises:
        SandboxUnavailable: it does not answer.
    """
    with _guard:
        found = _daemons.get(address)
        if found is None or found.pid != os.getpid():  # a forked child shares no connection with its parent
            found = _daemons[address] = Daemon(address)
        return found
