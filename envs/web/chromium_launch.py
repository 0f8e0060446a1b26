"""Starts Chromium unprivileged inside bubblewrap: no network but one Unix socket, which leads to the site's server.

Playwright's driver ── pipes 3, 4 ── sh: setpriv, prlimit, bwrap ── forward.py ── chromium
                                                                        └── 127.0.0.1:80 ── SOCKET ── server
"""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from pathlib import Path

from sandbox.errors import SandboxUnavailable
from sandbox.launch import INNER_ID, host_command, root_arguments
from sandbox.machine import find_bwrap, machine, program_files
from sandbox.network import forward
from sandbox.types import Limits

BINARIES = ("/usr/lib/chromium/chromium", "/usr/bin/google-chrome-stable", "/opt/google/chrome/chrome")
PORT = 8000
INSIDE = "/run/agent-rl"
MEMORY_BYTES = 4 << 30
PROCESSES = 2000
SWITCHES = (
    "--no-sandbox",  # its own one needs user namespaces, which bubblewrap takes away
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--no-first-run",
    "--force-device-scale-factor=1",
    "--no-proxy-server",
    f"--host-resolver-rules=MAP *.test:80 127.0.0.1:{PORT}, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


def find_chromium() -> Path:
    """The real Chromium program, not the script in front of it.

    Raises:
        SandboxUnavailable: none is installed.
    """
    for name in BINARIES:
        if os.access(name, os.X_OK):
            return Path(name)
    raise SandboxUnavailable("Chromium is not installed; run: apt-get install chromium")


class Launch:
    """A folder with the launcher script, the socket's place, and a user id; `close` gives all of it back."""

    def __init__(self) -> None:
        self.chromium = find_chromium()
        shared = machine()
        self._uids = shared.uids
        self._uid = self._uids.claim() if self._uids is not None else None
        self.folder = Path(tempfile.mkdtemp(prefix="agent-rl-chromium-"))
        self.folder.chmod(0o711)
        self.socket = self.folder / "run" / "site.sock"
        self.script = self.folder / "chromium.sh"
        for name in ("run", "etc"):
            (self.folder / name).mkdir()
            (self.folder / name).chmod(0o755)
        self._group = shared.cgroups.make(f"chromium-{self.folder.name}") if shared.cgroups.usable else None
        if self._group is not None:
            self._group.set_limits(memory_bytes=MEMORY_BYTES, processes=PROCESSES)
        try:
            self._write()
        except BaseException:
            self.close()
            raise

    def _write(self) -> None:
        for name, data in program_files(find_bwrap()).items():
            _put(self.folder / name, data, 0o755)
        _put(self.folder / "run" / "forward.py", Path(forward.__file__).read_bytes(), 0o644)
        account = f"agent:x:{INNER_ID}:{INNER_ID}:agent:/tmp:/bin/false\n"
        _put(self.folder / "etc" / "passwd", account.encode(), 0o644)
        _put(self.folder / "etc" / "hosts", b"127.0.0.1 localhost\n", 0o644)
        for name in ("fonts", "alternatives"):
            if Path("/etc", name).is_dir():
                shutil.copytree(Path("/etc", name), self.folder / "etc" / name, symlinks=True)
                (self.folder / "etc" / name).chmod(0o755)
        _put(self.folder / "args", b"".join(os.fsencode(word) + b"\0" for word in self._arguments()), 0o644)
        limits = Limits(open_files=4096, file_bytes=1 << 30, memory_bytes=MEMORY_BYTES)
        before = host_command(
            machine().tools,
            limits,
            uid=self._uid,
            cgroup_files=self._group.procs_files if self._group is not None else (),
            address_space=False,
            processes=PROCESSES if self._group is None else None,
        )
        inner = ["/usr/bin/python3", "-I", f"{INSIDE}/forward.py", f"{INSIDE}/site.sock", str(PORT)]
        words = [*before, str(self.folder / "b/p/bwrap"), "--args", "9", "--", *inner, str(self.chromium)]
        command = f'#!/bin/sh\nexec {shlex.join(words)} "$@" 9<{shlex.quote(str(self.folder / "args"))}\n'
        _put(self.script, command.encode(), 0o755)

    def _arguments(self) -> list[str]:
        words = ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
        words += ["--unshare-cgroup", "--disable-userns", "--die-with-parent", "--new-session"]
        words += ["--uid", str(INNER_ID), "--gid", str(INNER_ID), "--hostname", "sandbox", "--clearenv"]
        for name, value in {"HOME": "/tmp", "LANG": "C.UTF-8", "TZ": "UTC", "PATH": "/usr/bin:/bin"}.items():
            words += ["--setenv", name, value]
        words += root_arguments("", str(self.folder / "etc"))
        words += ["--proc", "/proc", "--dev", "/dev", "--size", str(256 << 20), "--tmpfs", "/dev/shm"]
        words += ["--perms", "1777", "--size", str(512 << 20), "--tmpfs", "/tmp"]
        words += ["--ro-bind", str(self.folder / "run"), INSIDE, "--chdir", "/tmp", "--cap-drop", "ALL"]
        return [*words, "--remount-ro", "/dev", "--remount-ro", "/"]

    def close(self) -> None:
        """Remove the folder and give the user id back; safe to call twice."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._group is not None:
            self._group.remove()
            self._group = None
        if self._uids is not None and self._uid is not None:
            self._uids.release(self._uid)
            self._uid = None


def _put(path: Path, data: bytes, mode: int) -> None:
    for folder in reversed(path.parents):
        if not folder.exists():
            folder.mkdir()
            folder.chmod(0o755)
    path.write_bytes(data)
    path.chmod(mode)
