"""Building an image of a Dockerfile, and importing a root file system, by the Docker SDK."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import docker

from sandbox import files
from sandbox.docker_daemon import Daemon, daemon
from sandbox.errors import ImageError, SandboxLost, SandboxPathError
from sandbox.images import dockerfile as reading
from sandbox.images import leases
from sandbox.images.context import Archive, ContextLimits
from sandbox.images.stream import Watched
from sandbox.machine import machine
from sandbox.types import MIB

_FILE = ".agent-rl.dockerfile"
_HIDDEN = f"{_FILE}\n.dockerignore\n".encode()
"""What the daemon takes out of the context before anything is copied."""
_DIGITS, _CHUNK, _IMPORT_S = 32, 1 << 20, 600.0
_MAX_FILE_BYTES = 1 << 20
ROOT_LIMITS = ContextLimits(bytes=8 << 30, files=1_000_000)
"""Of a root file system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildLimits:
    """What one build may use. Processes are bounded for all builds of an engine together, see `stream`."""

    timeout_s: float = 1800.0
    memory_bytes: int = 2048 * MIB
    disk_bytes: int = 16384 * MIB
    """The build ends when the engine's disk has so much less room than at the start, whoever took it."""
    context: ContextLimits = field(default_factory=ContextLimits)


def build(
    dockerfile: str = "",
    context: Path | Mapping[str, bytes] | None = None,
    *,
    arguments: Mapping[str, str] | None = None,
    network: bool = False,
    keep: bool = False,
    limits: BuildLimits = BuildLimits(),
    progress: Callable[[str], None] = lambda line: None,
    address: str = "",
) -> str:
    """Build an image, once for the same Dockerfile, context, arguments and base images; returns its name.

    The name is for `SandboxSpec.base`. Nothing is downloaded, unless programs do so with `network`.

    Args:
        dockerfile: its text; empty for the file `Dockerfile` of the context.
        context: what COPY may take: files by path, or a folder.
        arguments: values of ARG.
        network: whether RUN may use the engine's default network.
        keep: keep the image when this process is gone; else the reaper removes it.
        limits: time, memory, room.
        progress: is given each line that the build prints, hostile text included.
        address: of the engine, as in `docker:ADDRESS`.

    Raises:
        ImageError: the Dockerfile or the context breaks a rule, or the build failed; `log` has the end of its output.
        SandboxUnavailable: no engine.
        SandboxLost: the engine failed.
    """
    engine, values = _engine(address), dict(arguments or {})
    text = dockerfile or _own_file(context)
    plain = reading.rewrite(text, lambda name: _base_id(engine, name))
    archive = Archive(limits.context)
    try:
        if isinstance(context, Path):
            archive.add_folder(context)
        elif context is not None:
            archive.add_files(context)
        key = json.dumps([plain, archive.digest(), sorted(values.items()), network])
        content = hashlib.sha256(key.encode()).hexdigest()[:_DIGITS]
        if (name := _claimed(engine, content, keep)) is not None:
            return name
        labelled = reading.rewrite(text, lambda name: _base_id(engine, name), _label())
        archive.add_files({_FILE: labelled.encode(), ".dockerignore": _HIDDEN})
        options = {
            "fileobj": archive.finish(),
            "custom_context": True,
            "dockerfile": _FILE,
            "buildargs": values,
            "container_limits": {"memory": limits.memory_bytes, "memswap": limits.memory_bytes},
            "network_mode": None if network else "none",
            "rm": True,
            "forcerm": True,
            "use_config_proxy": False,
        }
        image = Watched(engine, limits.timeout_s, limits.disk_bytes, progress).build(options)
        return _claim(engine, image, content, keep)
    finally:
        archive.close()


def _engine(address: str) -> Daemon:
    """An engine, noted where the reaper looks for what this process leaves."""
    engine = daemon(address)
    machine().ledger.record("engine", engine.url)
    return engine


def import_root(
    root: Path,
    *,
    keep: bool = False,
    limits: ContextLimits = ROOT_LIMITS,
    address: str = "",
) -> str:
    """Make an image of a root file system, once for the same content; returns its name for `SandboxSpec.base`.

    Args:
        root: a folder, whose owners and modes are kept (devices and sockets are left out), or a tar archive.
        keep: keep the image when this process is gone; else the reaper removes it.
        limits: how much it may hold; of an archive, its own size counts.
        address: of the engine, as in `docker:ADDRESS`.

    Raises:
        ImageError: too much, or the engine cannot read the archive.
        SandboxUnavailable: no engine.
        SandboxLost: the engine failed.
    """
    engine = _engine(address)
    with contextlib.ExitStack() as opened:
        if root.is_dir():
            archive = Archive(limits, root_system=True)
            opened.callback(archive.close)
            archive.add_folder(root)
            digest, source = archive.digest(), archive.finish()
        else:
            source = data = opened.enter_context(open(root, "rb"))
            if (size := os.fstat(data.fileno()).st_size) > limits.bytes:
                raise ImageError(
                    f"{root} has {size} bytes; at most {limits.bytes} are imported; raise the limits"
                )
            digest = hashlib.file_digest(data, "sha256").hexdigest()
            data.seek(0)
        content = hashlib.sha256(f"root {digest}".encode()).hexdigest()[:_DIGITS]
        if (name := _claimed(engine, content, keep)) is not None:
            return name
        return _claim(engine, _imported(engine, source), content, keep)


def _imported(engine: Daemon, data: IO[bytes]) -> str:
    client = engine.new_client(_IMPORT_S)
    try:
        # In chunks: of a file, the SDK and its HTTP library would each announce the length in their own way.
        chunks = iter(lambda: data.read(_CHUNK), b"")
        said = client.import_image_from_stream(chunks, changes=[_label()]).splitlines()[-1:]
    except docker.errors.APIError as error:
        raise ImageError(
            f"the engine did not take the root file system: {str(error.explanation)[:500]}"
        ) from error
    except (docker.errors.DockerException, OSError) as error:
        raise SandboxLost(f"docker: importing a root file system failed: {error}") from error
    finally:
        client.close()
    last = json.loads(said[0]) if said else {}
    if "error" in last or not str(last.get("status", "")).startswith("sha256:"):
        raise ImageError(
            f"the engine did not take the root file system: {str(last.get('error', last))[:500]}"
        )
    return str(last["status"])


def _label() -> str:
    pairs = [f"{name}={json.dumps(value)}" for name, value in leases.builder_labels().items()]
    return f"LABEL {' '.join(pairs)}"


def _own_file(context: Path | Mapping[str, bytes] | None) -> str:
    try:
        if isinstance(context, Path):
            folder = os.open(context, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                return files.read([folder], "Dockerfile", _MAX_FILE_BYTES).decode()
            finally:
                os.close(folder)
        return dict(context or {})["Dockerfile"].decode()
    except (KeyError, OSError, UnicodeError, SandboxPathError) as error:
        raise ImageError(
            f"no Dockerfile was given, and the context has none that can be read: {error}"
        ) from error


def _base_id(engine: Daemon, name: str) -> str:
    try:
        with engine.call(f"looking for image {name[:200]!r}") as api:
            found = _inspect(api, name)
    except ValueError as error:  # the SDK cannot put it into an address
        raise ImageError(f"{name[:200]!r} is no name of an image") from error
    if found is None:
        raise ImageError(
            f"the engine has no image {name[:200]!r}, and none is downloaded; docker pull or import it"
        )
    if (found.get("Config") or {}).get("OnBuild"):
        raise ImageError(
            f"the image {name[:200]!r} has ONBUILD instructions, which are not read here; use another"
        )
    return str(found["Id"])


def _claimed(engine: Daemon, content: str, keep: bool) -> str | None:
    with engine.call("looking for a built image") as api:
        found = _inspect(api, f"{leases.NAME}:{content}")
    if found is None:
        return None
    try:
        return _claim(engine, str(found["Id"]), content, keep)
    except SandboxLost:  # removed in this very moment
        return None


def _claim(engine: Daemon, image: str, content: str, keep: bool) -> str:
    with engine.call("naming an image") as api:
        name = leases.claim(api, image, content, keep=keep)
    engine.know(name, image)
    return name


def _inspect(api: Any, name: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = api.inspect_image(name)
    except docker.errors.NotFound:
        return None
    return found
