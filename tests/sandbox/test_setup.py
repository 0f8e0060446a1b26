from __future__ import annotations

import subprocess
import sys

import pytest

import sandbox
from sandbox import Sandbox, SandboxSpec, SandboxUnavailable, setup
from sandbox.types import CapabilityReport


def test_unknown_backend_names_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'bubblewrap'"):
        sandbox.create(backend="bublewrap")
    with pytest.raises(ValueError, match="Choices: bubblewrap"):
        sandbox.capabilities("xyz")


def test_every_capability_is_enforced_or_explained() -> None:
    report = sandbox.capabilities()
    assert report.backend == "bubblewrap"
    assert report.enforced | report.missing.keys() == setup.ALWAYS | setup.SOMETIMES
    assert not report.enforced & report.missing.keys()
    assert all(report.missing.values())


def test_requirements() -> None:
    report = sandbox.capabilities()
    with sandbox.create(SandboxSpec(require=report.enforced)) as box:
        assert isinstance(box, Sandbox)
        assert box.capabilities == report
    for name in report.missing:
        with pytest.raises(SandboxUnavailable, match="cannot be enforced here"):
            sandbox.create(SandboxSpec(require=frozenset({name})))
    with pytest.raises(SandboxUnavailable, match="did you mean 'no_network'"):
        sandbox.create(SandboxSpec(require=frozenset({"no_networks"})))


def test_a_missing_capability_is_refused_with_its_reason() -> None:
    report = CapabilityReport(
        backend="bubblewrap", enforced=frozenset(), missing={"processes": "no pids cgroup"}
    )
    with pytest.raises(
        SandboxUnavailable, match="'processes' is required but cannot be enforced here: no pids cgroup"
    ):
        setup.check_required(frozenset({"processes"}), report)


def test_importing_the_layer_is_light() -> None:
    heavy = {"asyncio", "numpy", "torch", "pydantic", "sandbox.bubblewrap"}
    code = f"import sys, sandbox; print(sorted({heavy!r} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"


ORDINARY = """
import os, sandbox
from sandbox.errors import SandboxPathError
report = sandbox.capabilities()
assert "exec" not in report.missing, report.missing
assert "separate_uid" in report.missing and "workspace_size" in report.missing, report
assert "memory_total" in report.missing and "processes" in report.missing, report
spec = sandbox.SandboxSpec(files={"d/f": b"1"}, limits=sandbox.Limits(memory_bytes=200 << 20))
with sandbox.create(spec) as box:
    assert box.exec(["/bin/cat", "d/f"]).stdout.text == "1"
    posture = box.posture()
    assert posture["uid"] == os.getuid() and posture["effective_capabilities"] == 0 and posture["seccomp"] == 2
    assert posture["limits"]["Max address space"] == str(200 << 20)
    with box.fork() as child:
        assert child.exec(["/bin/bash", "-c", "rm -r d; mkdir -p x/y; chmod 0 x/y; chmod 0 x"]).ok
        child.write("d/g", b"2")
        assert child.exec(["/bin/ls", "d"]).stdout.text == "g\\n"
        shell = box.shell()
        assert shell.run("cat d/f").stdout.text == "1"
        shell.close()
    assert box.exec(["/bin/sleep", "60"], timeout_s=0.2).reason == "timeout"
    memory = box.exec(["/usr/bin/python3", "-I", "-S", "-c", "x = bytearray(1 << 30)"])
    assert memory.exit_code == 1 and "MemoryError" in memory.stderr.text
with sandbox.create() as box:
    box.exec(["/bin/chmod", "0", "/workspace"])
    for attempt in (box.snapshot, box.fork, lambda: box.read("f"), lambda: box.write("f", b"")):
        try:
            attempt()
        except SandboxPathError:  # the program's doing, and no failure of the sandbox
            continue
        raise AssertionError(attempt)
try:
    sandbox.create(sandbox.SandboxSpec(require=frozenset({"memory_total"})))
except sandbox.SandboxUnavailable as error:
    print(error)
"""


def test_an_ordinary_user_has_less_and_is_told_so(tmp_path_factory: pytest.TempPathFactory) -> None:
    import os
    import tempfile
    from pathlib import Path

    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root; the other tests run as an ordinary user already")
    root = Path(sandbox.__file__).parent.parent
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o777)
        command = ["/usr/bin/setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        command += [sys.executable, "-W", "error", "-B", "-c", ORDINARY]
        shown = subprocess.run(
            command,
            cwd=root,
            env={"TMPDIR": scratch, "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        if "Permission denied" in shown.stderr and "ORDINARY" not in shown.stderr and not shown.stdout:
            pytest.skip(
                f"another user cannot read the interpreter or this checkout: {shown.stderr.strip()[-200:]}"
            )
        assert shown.returncode == 0, shown.stderr
        assert shown.stdout.startswith(
            "'memory_total' is required but cannot be enforced here: no writable memory cgroup"
        )
        assert os.listdir(scratch) == []
