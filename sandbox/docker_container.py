"""One container, which holds no files of its own: hardened, idle, gone when this process ends."""

from __future__ import annotations

import contextlib
import functools
import os
import select
import socket
import time
import weakref
from pathlib import Path
from typing import Any

from docker.types import Ulimit

from sandbox import docker_groups, docker_labels, docker_mounts, docker_profile, launch, proctree
from sandbox.docker_daemon import Daemon
from sandbox.errors import SandboxLost, SandboxUnavailable
from sandbox.files import WORKSPACE
from sandbox.machine import Machine
from sandbox.network import Policy
from sandbox.network.port import Port
from sandbox.removal import remove_tree
from sandbox.types import SandboxSpec

_KEEPER = 65534
"""User of the idle program: not that of programs, so that none can end the container."""
OWN_TASKS = 2
"""The init and the idle program."""
_START_S = 30.0
_PLACEHOLDER = "size=64k,mode=755"
_WRITABLE = frozenset({"/proc", "/tmp", "/run", "/dev/shm", "/dev/pts", "/dev/mqueue", WORKSPACE})
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_open_here: weakref.WeakSet[Container] = weakref.WeakSet()


class Container:
    """A running container for programs of host user `uid`.

    Its idle program reads a stream that this process keeps open. However this process ends, the stream ends with it,
    and with that the program, the container and all that runs in it.

    Raises:
        SandboxUnavailable: the image cannot be used.
        SandboxLost: the daemon failed.
    """

    def __init__(self, daemon: Daemon, machine: Machine, spec: SandboxSpec, uid: int) -> None:
        self._daemon, self._machine, self.uid = daemon, machine, uid
        self.image = spec.profile == "image"
        self.user = "0:0" if self.image else f"{uid}:{uid}"
        self._fds: list[int] = []
        self._keeper: socket.socket | None = None
        self._shown = False
        self.groups: docker_groups.Groups | None = None
        self.port: Port | None = None
        _open_here.add(self)
        image = daemon.image(spec.base)
        machine.ledger.touch()
        with daemon.call("creating a container") as api:
            host = api.create_host_config(**_confinement(spec))
            self.id: str = api.create_container_from_config(_description(image, spec, host))["Id"]
        try:
            self._start(accounts=not spec.base)
            if spec.allow:
                self.port = Port(self._init_pid, Policy.parse(spec.allow))
        except BaseException:
            self.remove()
            raise

    def show(self, source: str) -> None:
        """Show a folder of the launcher's namespace as the workspace, instead of what was shown."""
        self.hide()
        self.place(docker_mounts.copy(self._machine.launcher, source), WORKSPACE)
        self._shown = True

    def hide(self) -> None:
        """Take the workspace away; no program may be running."""
        shown, self._shown = self._shown, False
        if shown:
            docker_mounts.remove(self.namespace, WORKSPACE)

    def cover_run(self, source: str) -> None:
        """Put a folder of the launcher's namespace over `/run`, where this process cannot write otherwise."""
        self.place(docker_mounts.copy(self._machine.launcher, source), "/run")
        self.notices = self._open("run", _FOLDER, self.root)

    def kill_programs(self) -> None:
        """Kill everything but the container's own two processes and what runs in shells.

        Raises:
            SandboxLost: something survives.
        """
        docker_groups.kill(self.running.folder, self._own)

    def clear(self) -> None:
        """Empty `/tmp` and `/dev/shm`; no program may be running."""
        for folder in (self._tmp, self._shm):
            for name in os.listdir(folder):
                try:
                    os.unlink(name, dir_fd=folder)
                except IsADirectoryError:
                    remove_tree(name, dir_fd=folder)

    def require_alive(self) -> None:
        """Tell whether the container still runs: no program can end it, so if not, something outside did.

        Raises:
            SandboxLost: it does not.
        """
        going = proctree.is_exiting(self._init_pid)  # its programs die before it does
        poll = select.poll()
        poll.register(self._init, select.POLLIN)
        if poll.poll(0) or going:
            raise SandboxLost(f"container {self.id[:12]} was ended from outside")

    @property
    def running(self) -> docker_groups.Groups:
        """Its groups."""
        assert self.groups is not None
        return self.groups

    def remove(self) -> None:
        """Kill and remove it; safe to call twice."""
        if self.port is not None:
            self.port.close()
        if self._keeper is not None:
            self._keeper.close()
        for fd in self._fds:
            os.close(fd)
        self._fds = []
        try:
            self._daemon.remove(self.id)
        except SandboxLost:
            if self.groups is None:
                raise
            docker_groups.kill(self.groups.folder)  # the daemon forgets the container when it is back
        finally:
            if self.groups is not None:
                self.groups.close()

    def abandon(self) -> None:
        """Let go, in a forked child, of the stream that would keep the container of a dead parent alive."""
        if self._keeper is not None:
            self._keeper.close()

    def _start(self, *, accounts: bool) -> None:
        path = f"/containers/{self.id}/attach?stream=1&stdin=1"
        self._keeper, _ = self._daemon.open_stream(path, {})
        with self._daemon.call("starting a container") as api:
            api.start(self.id)
            init = int(api.inspect_container(self.id)["State"]["Pid"])
        if init <= 0:
            raise SandboxLost("docker started a container that ended at once; its image needs a cat program")
        try:
            self._init_pid, self._init = init, os.pidfd_open(init)
            self._fds.append(self._init)
            self.groups = docker_groups.Groups(self.id, init, self._machine.cgroups.version)
            self._own = frozenset({init, self._idle(init)})
            for pid in self._own:
                _spare(pid)
            self.namespace = self._open(f"/proc/{init}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
            self.root = root = self._open(f"/proc/{init}/root", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._tmp, self.notices = self._open("tmp", _FOLDER, root), self._open("run", _FOLDER, root)
            self._shm = self._open("shm", _FOLDER, self._open("dev", _FOLDER, root))
            for folder, mode in ((self._tmp, 0o1777), (self._shm, 0o1777), (self.notices, 0o711)):
                os.fchmod(folder, mode)  # what the image has under a tmpfs decides its mode otherwise
            if accounts:
                self._name_user()
            docker_mounts.make_read_only(self.namespace, _needlessly_writable(init))
        except OSError as error:
            raise SandboxLost(f"a container that was just started cannot be reached: {error}") from error

    def _open(self, path: str, flags: int, within: int | None = None) -> int:
        fd = os.open(path, flags, dir_fd=within)
        self._fds.append(fd)
        return fd

    def _idle(self, init: int) -> int:
        until = time.monotonic() + _START_S
        while time.monotonic() < until:
            for child in proctree.children(init):
                with contextlib.suppress(OSError):
                    if Path(f"/proc/{child}/cmdline").read_bytes().startswith(b"/bin/cat"):
                        return child
            time.sleep(0.001)
        raise SandboxUnavailable("the idle program of a container does not run; its image needs /bin/cat")

    def _name_user(self) -> None:
        """Show accounts in which the programs' user id has a name."""
        for name in ("passwd", "group"):
            text = launch.ACCOUNTS[name].replace(str(launch.INNER_ID), str(self.uid))
            path = os.path.join(self._machine.base, f"{self.id}-{name}")

            def write(path: str = path, text: str = text) -> None:
                Path(path).write_text(text)
                os.chmod(path, 0o644)

            self._machine.launcher.call(write)
            try:
                fd = docker_mounts.copy(self._machine.launcher, path, read_only=True)
                self.place(fd, f"/etc/{name}")
            finally:  # the container's mount keeps the file
                self._machine.launcher.call(functools.partial(os.unlink, path))

    def place(self, fd: int, target: str) -> None:
        """Mount a copy at an absolute path, and close it.

        Raises:
            OSError: the kernel refuses.
        """
        try:
            docker_mounts.place(self.namespace, fd, target)
        finally:
            os.close(fd)


def _spare(pid: int) -> None:
    """Let the kernel choose other processes than this one when memory runs out: the container must outlive them."""
    adjust = Path(f"/proc/{pid}/oom_score_adj")
    try:
        adjust.write_text("-1000")
    except PermissionError:  # without CAP_SYS_RESOURCE; programs have 1000
        adjust.write_text("0")


def _needlessly_writable(init: int) -> list[str]:
    """What Docker leaves writable in a container whose root is read-only."""
    mounts = [line.split() for line in Path(f"/proc/{init}/mountinfo").read_text().splitlines()]
    return [mount[4] for mount in mounts if "rw" in mount[5].split(",") and mount[4] not in _WRITABLE]


def _confinement(spec: SandboxSpec) -> dict[str, Any]:
    limits = spec.limits
    room = "rw,nosuid,nodev,exec,mode=1777,size={0},nr_inodes={1}"
    shm = min(launch.SHM_BYTES, limits.tmp_bytes)
    return {
        "auto_remove": True,
        "init": True,
        "network_mode": "none",
        "ipc_mode": "private",
        "cgroupns": "private",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges", f"seccomp={docker_profile.profile()}"],
        "read_only": True,
        "tmpfs": {
            "/tmp": room.format(limits.tmp_bytes, 1024 + limits.tmp_bytes // 4096),
            "/dev/shm": room.format(shm, 1024 + shm // 4096),
            "/run": "rw,nosuid,nodev,noexec,mode=711,size=64k,nr_inodes=1024",
            WORKSPACE: _PLACEHOLDER,
        },
        "binds": [] if spec.base else ["/usr:/usr:ro"],
        "mem_limit": limits.memory_bytes,
        "memswap_limit": limits.memory_bytes,
        "pids_limit": limits.processes + OWN_TASKS,
        "oom_score_adj": 1000,
        "ulimits": [
            Ulimit(name="nofile", soft=limits.open_files, hard=limits.open_files),
            Ulimit(name="fsize", soft=limits.file_bytes, hard=limits.file_bytes),
            Ulimit(name="core", soft=0, hard=0),
        ],
        "log_config": {"Type": "none", "Config": {}},
    }


def _description(image: str, spec: SandboxSpec, host: dict[str, Any]) -> dict[str, Any]:
    return {
        "Image": image,
        "Hostname": "sandbox",
        "User": f"{_KEEPER}:{_KEEPER}",
        "Entrypoint": ["/bin/cat"],
        "Cmd": [],
        "Healthcheck": {"Test": ["NONE"]},
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "NetworkDisabled": True,
        "Labels": docker_labels.labels(),
        "HostConfig": host,
    }


def _forget() -> None:
    for container in list(_open_here):
        container.abandon()


os.register_at_fork(after_in_child=_forget)
