"""A Docker Engine of the tests' own, without networks, in a temporary folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from sandbox.cgroups import remove_group
from sandbox.removal import remove_tree

_START_S, _STOP_S = 30.0, 30.0
MAPPED_ROOT = 1_800_000_000
"""Host user that containers of a mapped engine have as root."""


class Unavailable(RuntimeError):
    """No engine can be started here."""


@contextlib.contextmanager
def running(*, mapped: bool = False) -> Iterator[str]:
    """The address of a new engine, which is stopped and removed at the end.

    With `mapped`, it gives containers a user namespace; it has a mount namespace and an `/etc/subuid` of its own.

    Raises:
        Unavailable: with the reason.
    """
    dockerd = shutil.which("dockerd", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if dockerd is None:
        raise Unavailable("dockerd is not installed (apt-get install docker.io)")
    if os.geteuid() != 0:
        raise Unavailable("a Docker Engine of one's own needs root")
    folder = Path(tempfile.mkdtemp(prefix="dockerd-"))
    try:
        with open(folder / "log", "wb") as log, _start(dockerd, folder, log.fileno(), mapped) as daemon:
            try:
                address = f"unix://{folder}/sock"
                _wait(folder / "sock", daemon, folder / "log")
                yield address
            finally:
                daemon.terminate()
                try:
                    daemon.wait(_STOP_S)
                except subprocess.TimeoutExpired:
                    daemon.kill()
    finally:
        _unmount(folder)
        for path in groups(f"unix://{folder}/sock"):
            remove_group(path)
        remove_tree(str(folder))


def groups(address: str) -> list[Path]:
    """Control groups of an engine's containers and their parents, inner ones first."""
    part = f"/{home(address).name}/"
    found = [folder for folder, _, _ in os.walk("/sys/fs/cgroup", topdown=False)]
    return [Path(folder) for folder in found if part in f"{folder}/"]


def home(address: str) -> Path:
    """The folder of an engine of `running`."""
    return Path(address.removeprefix("unix://")).parent


def _start(dockerd: str, folder: Path, log: int, mapped: bool) -> subprocess.Popen[bytes]:
    command = [dockerd, "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec"]
    command += ["--pidfile", f"{folder}/pid", "-H", f"unix://{folder}/sock", "--storage-driver=overlay2"]
    command += ["--bridge=none", "--iptables=false", "--ip-forward=false", "--ip-masq=false"]
    command += [f"--cgroup-parent=/{folder.name}"]  # so that its groups are told from another engine's
    if mapped:
        folder.chmod(0o711)  # containers' root must reach it
        for kind in ("uid", "gid"):
            (folder / f"sub{kind}").write_text(f"nobody:{MAPPED_ROOT}:65536\n")
            if not Path(f"/etc/sub{kind}").exists():
                raise Unavailable(f"mapping ids needs a file /etc/sub{kind} to cover")
        own = 'mount --bind "$0/subuid" /etc/subuid; mount --bind "$0/subgid" /etc/subgid; exec "$@"'
        command += ["--userns-remap=nobody:nogroup"]
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", own, str(folder), *command]
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(folder)}
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
    )


def _wait(path: Path, daemon: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _START_S
    while time.monotonic() < until and daemon.poll() is None:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(path))
            return
        time.sleep(0.05)
    said = log.read_text(errors="replace").strip().splitlines()[-1:]
    raise Unavailable(f"dockerd does not run here: {' '.join(said)[:300] or 'no message'}")


def _unmount(folder: Path) -> None:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split()[4] for line in lines if line.split()[4].startswith(f"{folder}/")]
    for point in sorted(points, key=len, reverse=True):
        subprocess.run(["umount", "-l", point], check=False, capture_output=True)
