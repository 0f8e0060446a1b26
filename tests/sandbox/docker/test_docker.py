"""What the suite does not ask: faults that come from outside, what is left behind, what a container may have."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

import sandbox
from sandbox import (
    Sandbox,
    SandboxLost,
    SandboxSpec,
    SandboxUnavailable,
    docker_labels,
    docker_leases,
    ledger,
    reaper,
)
from sandbox.conformance.subject import bash, python
from tests.sandbox.conftest import SMALL
from tests.sandbox.docker import engine

pytestmark = pytest.mark.docker
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def client(address: str) -> Iterator[Any]:
    made = docker.APIClient(base_url=address)
    yield made
    made.close()


def _ids(client: Any) -> set[str]:
    return {one["Id"] for one in client.containers(all=True, filters={"label": [docker_labels.OWNER]})}


def _gone(client: Any, before: set[str]) -> bool:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if _ids(client) <= before:
            return True
        time.sleep(0.05)
    return False


def test_the_container_is_as_hardened_as_it_says(backend: str, client: Any) -> None:
    before = _ids(client)
    with sandbox.create(SandboxSpec(limits=SMALL), backend):
        (made,) = _ids(client) - before
        seen = client.inspect_container(made)
    host = seen["HostConfig"]
    assert host["NetworkMode"] == "none"
    assert host["CapDrop"] == ["ALL"]
    assert not host["Privileged"]
    assert host["ReadonlyRootfs"]
    assert host["Memory"] == host["MemorySwap"] == SMALL.memory_bytes
    assert host["PidsLimit"] == SMALL.processes + 2
    assert host["LogConfig"]["Type"] == "none"
    assert host["Binds"] == ["/usr:/usr:ro"]
    assert not host["PortBindings"]
    assert "no-new-privileges" in host["SecurityOpt"]
    assert seen["Config"]["User"] == "65534:65534"
    assert _gone(client, before)


def test_a_container_that_is_removed_from_outside_is_a_fault(backend: str, client: Any) -> None:
    before = _ids(client)
    with sandbox.create(SandboxSpec(limits=SMALL), backend) as box:
        (made,) = _ids(client) - before
        removal = threading.Timer(0.5, lambda: client.remove_container(made, force=True))
        removal.start()
        with pytest.raises(SandboxLost):
            box.exec(["/bin/sleep", "60"])
        removal.join()
        with pytest.raises(SandboxLost):
            box.exec(["/bin/true"])


@pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"
)
def test_a_daemon_that_dies_is_a_fault() -> None:
    with contextlib.ExitStack() as running:
        address = running.enter_context(engine.running())
        box = sandbox.create(SandboxSpec(limits=SMALL), f"docker:{address}")
        running.close()
    with pytest.raises(SandboxLost):
        box.exec(["/bin/true"])
    box.close()
    assert "exec" in sandbox.capabilities("docker:unix:///nonexistent/sock").missing
    gc.collect()  # the SDK leaves sockets open when nobody listens


_HARNESS = """
import sys, sandbox
box = sandbox.create(sandbox.SandboxSpec(), sys.argv[1])
print("up", flush=True)
box.exec(["/bin/sleep", "60"], timeout_s=60)
"""


def test_a_killed_harness_leaves_no_container(backend: str, client: Any) -> None:
    before = _ids(client)
    with subprocess.Popen(
        [sys.executable, "-c", _HARNESS, backend], cwd=ROOT, stdout=subprocess.PIPE
    ) as harness:
        assert harness.stdout is not None
        assert harness.stdout.readline() == b"up\n"
        assert len(_ids(client) - before) == 1
        os.kill(harness.pid, signal.SIGKILL)
    assert _gone(client, before)


def test_containers_of_dead_owners_are_removed_and_others_left(backend: str, client: Any) -> None:
    with sandbox.create(SandboxSpec(limits=SMALL), backend) as box:
        mine = _ids(client)
        image = client.images(name="agent-rl-base", quiet=True)[0]
        dead = docker_labels.own_name().rpartition("/")[0] + "/999999999-1"
        elsewhere = {
            docker_labels.OWNER: "boot/pid:[1]/1-1",
            docker_labels.EXPIRES: str(int(time.time() + 60)),
        }
        over = {**elsewhere, docker_labels.EXPIRES: "1"}
        made = [
            client.create_container(image, ["/bin/cat"], labels=labels)["Id"]
            for labels in ({docker_labels.OWNER: dead}, over, elsewhere)
        ]
        assert sorted(docker_leases.clean(client)) == sorted(f"container {one}" for one in made[:2])
        assert _ids(client) == mine | {made[2]}
        client.remove_container(made[2])
        assert box.exec(["/bin/true"]).ok


def test_the_reaper_finds_them_by_the_environment(
    address: str, client: Any, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.create(SandboxSpec(limits=SMALL), backend).close()
    monkeypatch.setenv("DOCKER_HOST", address)
    image = client.images(name="agent-rl-base", quiet=True)[0]
    dead = {docker_labels.OWNER: docker_labels.own_name().rpartition("/")[0] + "/999999999-1"}
    made = client.create_container(image, ["/bin/cat"], labels=dead)["Id"]
    assert docker_leases.leftovers() == [f"container {made}"]
    assert docker_leases.remove_leftovers() == [f"container {made}"]
    assert docker_leases.leftovers() == []
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/sock")
    assert docker_leases.remove_leftovers() == []


_OWNER = """
import os, signal, sys
from pathlib import Path
from sandbox.ledger import Ledger
Ledger(Path(sys.argv[1])).record("engine", sys.argv[2])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_reaper_asks_the_engines_that_dead_owners_used(
    address: str, client: Any, backend: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/sock")
    monkeypatch.setattr(ledger, "folders", lambda: [tmp_path / "owners"])
    with sandbox.create(SandboxSpec(limits=SMALL), backend) as box:
        image = client.images(name="agent-rl-base", quiet=True)[0]
        dead = {docker_labels.OWNER: docker_labels.own_name().rpartition("/")[0] + "/999999999-1"}
        made = client.create_container(image, ["/bin/cat"], labels=dead)["Id"]
        assert reaper.clean() == []  # nobody says that there is an engine
        subprocess.run([sys.executable, "-c", _OWNER, tmp_path / "owners", address], cwd=ROOT, check=False)
        assert reaper.audit() == reaper.clean() == [f"container {made}"]
        assert reaper.audit() == []
        late = client.create_container(image, ["/bin/cat"], labels=dead)["Id"]  # asked for before its death
        assert reaper.clean() == [f"container {late}"]
        (entry,) = (tmp_path / "owners").iterdir()
        os.utime(entry, (0, 0))
        assert reaper.clean() == [f"owner {entry.name}"]
        assert box.exec(["/bin/true"]).ok


def test_a_start_removes_containers_of_dead_owners(backend: str, client: Any) -> None:
    sandbox.create(SandboxSpec(limits=SMALL), backend).close()
    image = client.images(name="agent-rl-base", quiet=True)[0]
    dead = {docker_labels.OWNER: docker_labels.own_name().rpartition("/")[0] + "/999999999-1"}
    made = client.create_container(image, ["/bin/cat"], labels=dead)["Id"]
    code = "import sys, sandbox; sandbox.create(backend=sys.argv[1]).close()"
    subprocess.run([sys.executable, "-c", code, backend], cwd=ROOT, check=True)
    assert made not in _ids(client)


def test_an_image_of_ones_own(backend: str, client: Any) -> None:
    with pytest.raises(SandboxUnavailable, match="docker pull no-such-image"):
        sandbox.create(SandboxSpec(base="no-such-image"), backend)
    folder = subprocess.run(
        ["tar", "-C", "/", "-c", "bin", "lib", "lib64", *static_parts()], capture_output=True, check=True
    )
    client.import_image_from_data(folder.stdout, repository="own-image", tag="1")
    with sandbox.create(SandboxSpec(base="own-image:1", limits=SMALL, files={"f": b"x"}), backend) as box:
        result = box.exec(["/bin/cat", "f"])
        assert (result.stdout.text, result.exit_code) == ("x", 0)
        assert box.exec(["/usr/bin/python3", "-V"]).exit_code == 127
        with contextlib.closing(box.shell()) as shell:
            assert shell.run("echo $((6 * 7))").stdout.text == "42\n"


def static_parts(*more: str) -> list[str]:
    """The few programs that an image must have, with the libraries that they load."""
    programs = ["/usr/bin/cat", "/usr/bin/env", "/usr/bin/bash", *(f"/usr/bin/{name}" for name in more)]
    listed = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=True).stdout
    libraries = {word for word in listed.split() if word.startswith("/") and not word.endswith(":")}
    resolved = {os.path.realpath(path) for path in libraries} | libraries
    names = {path.replace("/lib", "/usr/lib", 1) if path.startswith("/lib") else path for path in resolved}
    return sorted(path.lstrip("/") for path in {*programs, *names})


def test_what_cannot_be_met_is_refused(backend: str) -> None:
    with pytest.raises(ValueError, match="an allowed host reads"):
        sandbox.create(SandboxSpec(allow=("pypi.org",)), backend)
    with pytest.raises(SandboxUnavailable, match="user_namespace"):
        sandbox.create(SandboxSpec(require=frozenset({"user_namespace"})), backend)
    with pytest.raises(SandboxUnavailable, match="not on this machine"):
        sandbox.create(SandboxSpec(), "docker:tcp://10.0.0.1:2375")


def test_programs_cannot_end_the_container(box: Sandbox, client: Any) -> None:
    before = _ids(client)
    script = "kill -9 1; kill -9 -1; kill -9 $(ls /proc | grep -E '^[0-9]+$' | grep -v $$); echo alive"
    assert bash(box, script).stdout.text == "alive\n"
    assert _ids(client) == before


def test_no_program_reaches_the_notice_pipe_of_a_shell_by_name(box: Sandbox) -> None:
    with contextlib.closing(box.shell()) as shell:
        assert shell.run("ls /run").exit_code == 2
        assert bash(box, "ls /run; echo x > /run/x").stdout.text == ""
        assert shell.run("echo fine").stdout.text == "fine\n"


def test_what_a_command_wrote_is_there_when_it_ends_however_slow_the_engine(
    box: Sandbox, address: str
) -> None:
    daemon = int((engine.home(address) / "pid").read_text())
    with contextlib.closing(box.shell()) as shell:
        os.kill(daemon, signal.SIGSTOP)
        try:
            result = shell.run("echo out; echo err >&2", timeout_s=5)
        finally:
            os.kill(daemon, signal.SIGCONT)
        assert (result.reason, result.stdout.text, result.stderr.text) == ("ok", "out\n", "err\n")


def test_programs_beside_a_shell_are_told_apart(box: Sandbox) -> None:
    with contextlib.closing(box.shell()) as shell:
        shell.run("setsid sleep 61.41 & setsid sleep 61.42 >/dev/null 2>&1 &")
        bash(box, "setsid sleep 61.43 >/dev/null 2>&1 &")
        found = shell.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '").stdout.text
        assert "61.41" in found
        assert "61.42" in found
        assert "61.43" not in found
    found = python(box, "import glob; print([open(p).read() for p in glob.glob('/proc/[0-9]*/cmdline')])")
    assert "61.4" not in found.stdout.text


def test_the_seams_types_hold(box: Sandbox) -> None:
    assert isinstance(box, Sandbox)
    assert json.dumps(dict(box.posture()))


def test_few_processes_are_enough_to_start(backend: str) -> None:
    with sandbox.create(SandboxSpec(limits=replace(SMALL, processes=1)), backend) as box:
        assert box.exec(["/bin/echo", "one"]).stdout.text == "one\n"
        forks = "import os, time\nfor _ in range(40):\n  if os.fork() == 0: time.sleep(60)"
        assert python(box, forks).reason == "pids"
