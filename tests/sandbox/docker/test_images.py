"""Images built and imported at a real engine, from files that may be hostile."""

from __future__ import annotations

import os
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

import sandbox
from sandbox import ImageError, SandboxSpec, docker_labels, docker_leases, images
from sandbox.images import BuildLimits, ContextLimits, leases
from tests.sandbox.conftest import SMALL
from tests.sandbox.docker.test_docker import static_parts

pytestmark = pytest.mark.docker
QUICK = BuildLimits(timeout_s=60.0)


@pytest.fixture
def client(address: str) -> Iterator[Any]:
    made = docker.APIClient(base_url=address)
    yield made
    made.close()


@pytest.fixture(scope="module")
def base(address: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A root file system with a few programs, imported as a folder."""
    root = tmp_path_factory.mktemp("root")
    listed = subprocess.run(
        ["tar", "-C", "/", "-c", "bin", "lib", "lib64", *static_parts("dd", "sleep", "id", "cp")],
        capture_output=True,
        check=True,
    )
    subprocess.run(["tar", "-C", str(root), "-x"], input=listed.stdout, check=True)
    (root / "usr/bin/sh").symlink_to("bash")
    (root / "tmp").mkdir(mode=0o1777)
    return images.import_root(root, keep=True, address=address)


def test_a_dockerfile_is_built_once_and_runs_in_a_sandbox(address: str, base: str, backend: str) -> None:
    lines: list[str] = []
    text = f"FROM {base}\nARG WHO\nCOPY hello /hello\nRUN echo built by $WHO > /who && echo loud\n"
    options: dict[str, Any] = {"arguments": {"WHO": "me"}, "limits": QUICK, "address": address}
    name = images.build(text, {"hello": b"hello\n"}, progress=lines.append, **options)
    assert "loud" in lines
    with sandbox.create(SandboxSpec(base=name, limits=SMALL), backend) as box:
        assert box.exec(["/bin/cat", "/hello", "/who"]).stdout.text == "hello\nbuilt by me\n"
        assert not box.exec(["/bin/cat", "/.agent-rl.dockerfile"]).ok
    before = len(lines)
    assert images.build(text, {"hello": b"hello\n"}, progress=lines.append, **options) == name
    assert len(lines) == before
    assert images.build(text, {"hello": b"other\n"}, **options) != name
    options["arguments"] = {"WHO": "you"}
    assert images.build(text, {"hello": b"hello\n"}, **options) != name


def test_a_folder_has_its_own_dockerfile(address: str, base: str, backend: str, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM {base}\nCOPY . /all/\nRUN echo /all/* /all/.* > /list\n")
    (tmp_path / "a").write_text("a")
    name = images.build(context=tmp_path, limits=QUICK, address=address)
    with sandbox.create(SandboxSpec(base=name, limits=SMALL), backend) as box:
        listed = set(box.exec(["/bin/cat", "/list"]).stdout.text.split())
    assert {"/all/a", "/all/Dockerfile"} <= listed
    assert not any("agent-rl" in path or "ignore" in path for path in listed)


def test_a_step_that_fails_shows_the_end_of_the_log(address: str, base: str, client: Any) -> None:
    containers = {one["Id"] for one in client.containers(all=True)}
    text = f'FROM {base}\nRUN echo before; echo \'{{"aux":{{"ID":"sha256:0"}}}}\'; echo late >&2; exit 7\n'
    with pytest.raises(ImageError, match="code: 7") as caught:
        images.build(text, limits=QUICK, address=address)
    assert "late" in caught.value.log
    assert "before" in caught.value.log
    assert {one["Id"] for one in client.containers(all=True)} == containers


def test_a_build_is_bounded(address: str, base: str, client: Any) -> None:
    containers = {one["Id"] for one in client.containers(all=True)}
    started = time.monotonic()
    with pytest.raises(ImageError, match="longer than 2 s"):
        images.build(f"FROM {base}\nRUN sleep 120\n", limits=BuildLimits(timeout_s=2), address=address)
    assert time.monotonic() - started < 20
    loud = f"FROM {base}\nRUN while :; do echo x; sleep 0.1; done\n"
    with pytest.raises(ImageError, match="longer than 2 s"):
        images.build(loud, limits=BuildLimits(timeout_s=2), address=address)
    with pytest.raises(ImageError, match="printed more"):
        images.build(f"FROM {base}\nRUN while :; do echo {'x' * 4000}; done\n", limits=QUICK, address=address)
    text = f"FROM {base}\nRUN dd if=/dev/zero of=/big bs=1048576 count=3000; sleep 60\n"
    with pytest.raises(ImageError, match="disk lost"):
        images.build(text, limits=replace(QUICK, disk_bytes=100 << 20), address=address)
    text = f"FROM {base}\nRUN x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done\n"
    with pytest.raises(ImageError, match="137"):
        images.build(text, limits=replace(QUICK, memory_bytes=64 << 20), address=address)
    until = time.monotonic() + 15
    while time.monotonic() < until and {one["Id"] for one in client.containers(all=True)} != containers:
        time.sleep(0.1)
    assert {one["Id"] for one in client.containers(all=True)} == containers


def test_a_build_has_no_network_and_bounded_processes(address: str, base: str, backend: str) -> None:
    text = f"FROM {base}\nRUN cat /proc/net/dev > /net; cat /proc/self/cgroup > /groups\n"
    name = images.build(text, limits=QUICK, address=address)
    with sandbox.create(SandboxSpec(base=name, limits=SMALL), backend) as box:
        seen = box.exec(["/bin/cat", "/net"]).stdout.text.splitlines()
        assert [line.split(":")[0].strip() for line in seen[2:]] == ["lo"]
        assert "/agent-rl-build/" in box.exec(["/bin/cat", "/groups"]).stdout.text
    assert (
        Path("/sys/fs/cgroup/pids/agent-rl-build/pids.max").exists()
        or Path("/sys/fs/cgroup/agent-rl-build/pids.max").exists()
    )


def test_nothing_is_downloaded(address: str, base: str, client: Any) -> None:
    with pytest.raises(ImageError, match="none is downloaded"):
        images.build("FROM python:3.12\n", limits=QUICK, address=address)
    with pytest.raises(ImageError, match="none is downloaded"):
        images.build("FROM ../../containers/json\n", limits=QUICK, address=address)
    container = client.create_container(base, ["/bin/cat"])["Id"]
    trap = client.commit(container, "trap", "1", changes=["ONBUILD ADD http://127.0.0.1/ /x"])["Id"]
    client.remove_container(container)
    with pytest.raises(ImageError, match="ONBUILD"):
        images.build("FROM trap:1\n", limits=QUICK, address=address)
    client.remove_image(trap, force=True)


def test_an_archive_is_imported_once(address: str, backend: str, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "root.tar", "w") as tar:
        for part in ("bin", "lib", "lib64", *static_parts()):
            tar.add(f"/{part}", part, recursive=False)
    name = images.import_root(tmp_path / "root.tar", address=address)
    assert images.import_root(tmp_path / "root.tar", address=address) == name
    with sandbox.create(SandboxSpec(base=name, limits=SMALL), backend) as box:
        assert box.exec(["/bin/cat"], stdin=b"x").stdout.text == "x"
    with pytest.raises(ImageError, match="at most 10 are imported"):
        images.import_root(tmp_path / "root.tar", limits=ContextLimits(bytes=10), address=address)
    (tmp_path / "broken").write_bytes(os.urandom(4096))
    with pytest.raises(ImageError, match="did not take"):
        images.import_root(tmp_path / "broken", address=address)


def test_images_of_the_dead_go_and_those_of_the_living_stay(
    address: str, base: str, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = docker_labels.own_name()
    dead = own.rpartition("/")[0] + "/999999999-1"

    def build(text: str, owner: str, *, keep: bool = False) -> str:
        monkeypatch.setattr(docker_labels, "own_name", lambda: owner)
        return images.build(f"FROM {base}\n{text}", keep=keep, limits=QUICK, address=address)

    alone, shared = build("RUN echo 1 > /1", dead), build("RUN echo 2 > /2", dead)
    kept = build("RUN echo 3 > /3", dead, keep=True)
    with pytest.raises(ImageError):
        build("RUN echo 4 > /4\nRUN exit 1", dead)
    assert build("RUN echo 2 > /2", own) == shared
    half_done = {"label": [f"{leases.BUILDER}={dead}"], "dangling": True}
    assert client.images(filters=half_done)
    removed = docker_leases.clean(client)
    assert f"image {alone}" in removed
    assert not {f"image {name}" for name in (shared, kept, base)} & set(removed)
    tags = {tag for image in client.images() for tag in image["RepoTags"] or []}
    assert alone not in tags
    assert {shared, kept, base} <= tags
    assert not client.images(filters=half_done)
    assert docker_leases.clean(client) == []


def test_processes_build_the_same_image_at_the_same_time(address: str, base: str) -> None:
    names: list[str] = []
    text = f"FROM {base}\nRUN echo together > /t\n"
    builds = [
        threading.Thread(target=lambda: names.append(images.build(text, limits=QUICK, address=address)))
        for _ in range(4)
    ]
    for one in builds:
        one.start()
    for one in builds:
        one.join()
    assert len(names) == 4
    assert len(set(names)) == 1
