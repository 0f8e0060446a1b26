"""What needs no engine: the filter in Docker's form, labels, and what is said where no engine answers."""

from __future__ import annotations

import json
import os
import time

import pytest

import sandbox
from sandbox import SandboxSpec, SandboxUnavailable, docker_labels, docker_leases, docker_profile, seccomp
from sandbox.docker_labels import EXPIRES, OWNER


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_profile_refuses_what_the_filter_refuses(machine: str) -> None:
    profile = json.loads(docker_profile.profile(machine))
    refused = {name for rule in profile["syscalls"] if not rule["args"] for name in rule["names"]}
    assert refused == {*seccomp.denied(machine), "clone3"}
    bits = {
        name: sum(rule["args"][0]["value"] for rule in profile["syscalls"] if rule["names"] == [name])
        for name in ("clone", "unshare")
    }
    assert bits == {
        "clone": seccomp.NEW_NAMESPACES,
        "unshare": seccomp.NEW_NAMESPACES | seccomp.NEW_TIME,
    }
    assert len(profile["architectures"]) == 1
    families = [rule["args"][0] for rule in profile["syscalls"] if rule["names"] == ["socket"]]
    equal = {one["value"] for one in families if one["op"] == "SCMP_CMP_EQ"}
    assert equal == set(range(16)) - set(seccomp.FAMILIES)
    assert [one["value"] for one in families if one["op"] == "SCMP_CMP_GT"] == [16]


def test_owners_are_told_apart() -> None:
    mine = docker_labels.labels()
    assert not docker_labels.is_dead(mine)
    here, _, process = mine[OWNER].rpartition("/")
    assert process.startswith(f"{os.getpid()}-")
    for other in (f"{here}/999999999-1", f"{here}/{os.getpid()}-1", f"{here}/x", f"{here}/"):
        assert docker_labels.is_dead({**mine, OWNER: other})
    elsewhere = {OWNER: "another-boot/pid:[1]/1-1"}
    assert not docker_labels.is_dead({**elsewhere, EXPIRES: str(int(time.time() + 60))})
    for expired in ("1", "", "x"):
        assert docker_labels.is_dead({**elsewhere, EXPIRES: expired})


def test_without_an_engine_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    report = sandbox.capabilities("docker:unix:///nonexistent/sock")
    assert report.enforced == frozenset()
    assert "start dockerd" in report.missing["exec"]
    with pytest.raises(SandboxUnavailable, match="no Docker Engine answers"):
        sandbox.create(SandboxSpec(), "docker:unix:///nonexistent/sock")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/sock")
    assert docker_leases.leftovers() == docker_leases.remove_leftovers() == []
