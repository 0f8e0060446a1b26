"""Running pytest on a repository in a fresh sandbox, with nothing of the repository's own configuration."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from envs.swe import junit, run_tests
from envs.swe.kit import PYTHON, kit
from envs.swe.repository import HOME, KIT, REPO, placed
from sandbox.base import Sandbox
from sandbox.errors import SandboxLost, SandboxPathError
from sandbox.files import WORKSPACE
from sandbox.types import MIB, ExecResult, Limits, SandboxSpec

Opener = Callable[[SandboxSpec], Sandbox]

START = (PYTHON, "-B", "-s", "-S", "-P")
"""No `site`, no user folder, no folder of the script; with `PYTHONHASHSEED`, which `-I` would ignore."""
ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "PYTHONIOENCODING": "utf-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "LC_ALL": "C.UTF-8",
}
INI = "[pytest]\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class PytestRun:
    """What to run: a repository, and which of its tests."""

    files: Mapping[str, bytes]
    tests: Sequence[str]
    """Files or node ids."""
    roots: Sequence[str]
    """Absolute folders to import from."""
    plugins: Sequence[str] = ()
    """Modules loaded by `-p`."""
    import_mode: str = "importlib"
    cpu_s: int = 15
    wall_s: float = 20.0
    hash_seed: int = 0
    support: Mapping[str, bytes] = field(default_factory=dict)
    """Further files of the harness, in a folder that is imported from."""
    wanted: str = ""
    """A file that `support` leaves in that folder, to be read afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PytestResult:
    """How the program ended, what its report says (None without one), and the wanted file."""

    done: ExecResult
    seen: Mapping[junit.Key, list[str]] | None = None
    report: bytes = b""
    wanted: bytes = b""

    def entries(self, node: str) -> list[str]:
        """What the report says of a node id."""
        return (self.seen or {}).get(junit.key_of(node), [])


def run_pytest(run: PytestRun, opened: Opener, backend: str) -> PytestResult:
    """Run it in a sandbox that `opened` starts. Folder and report have random names.

    Raises:
        SandboxLost: the sandbox itself is gone.
    """
    own, report = f".grade/{secrets.token_hex(8)}", f"{secrets.token_hex(8)}.xml"
    harness = {
        "run_tests.py": Path(run_tests.__file__).read_bytes(),
        "pytest.ini": INI.encode(),
        **run.support,
    }
    files = {
        **placed(run.files),
        KIT: kit(backend),
        **{f"{own}/{name}": data for name, data in harness.items()},
    }
    folder = f"{WORKSPACE}/{own}"
    arguments = ["-q", "-c", f"{folder}/pytest.ini", "--rootdir", HOME, "--noconftest", "--tb=short"]
    arguments += ["-p", "no:cacheprovider", "-o", "junit_family=xunit1", f"--import-mode={run.import_mode}"]
    arguments += [f"--junitxml={folder}/{report}", *(word for name in run.plugins for word in ("-p", name))]
    request = {
        "cpu_s": run.cpu_s,
        "kit": f"{WORKSPACE}/{KIT}",
        "roots": [*run.roots, *([folder] if run.support else [])],
        "arguments": [*arguments, *run.tests],
    }
    with opened(spec_of(files, run.wall_s, run.hash_seed)) as box:
        done = execute(box, f"{own}/run_tests.py", request, run.wall_s)
        data = _read(box, f"{own}/{report}")
        wanted = _read(box, f"{own}/{run.wanted}") if run.wanted else None
    seen = junit.outcomes(data) if data is not None else None
    return PytestResult(done=done, seen=seen, report=data or b"", wanted=wanted or b"")


def spec_of(files: Mapping[str, bytes], seconds: float, hash_seed: int = 0) -> SandboxSpec:
    """A sandbox of these files for a program of ours that runs code which nobody trusts."""
    limits = Limits(timeout_s=seconds, max_output_bytes=8 * MIB, kill_output_bytes=16 * MIB)
    return SandboxSpec(limits=limits, files=files, env={**ENVIRONMENT, "PYTHONHASHSEED": str(hash_seed)})


def execute(box: Sandbox, program: str, request: Mapping[str, object], seconds: float) -> ExecResult:
    """Start a program of ours in the repository, with a request on its standard input.

    Raises:
        SandboxLost: the sandbox itself is gone.
    """
    stdin = json.dumps(request).encode()
    done = box.exec([*START, f"{WORKSPACE}/{program}"], stdin=stdin, cwd=REPO, timeout_s=seconds)
    if done.reason == "sandbox_lost":
        raise SandboxLost("a sandbox was lost while it ran a repository")
    return done


def _read(box: Sandbox, path: str) -> bytes | None:
    try:
        return box.read(path, max_bytes=junit.MAX_BYTES)
    except SandboxPathError:
        return None
