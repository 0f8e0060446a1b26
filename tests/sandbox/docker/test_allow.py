"""The allow-list over Docker: what bubblewrap's is asked, on any image."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import sandbox
from sandbox import Sandbox, SandboxSpec, SandboxUnavailable
from sandbox.remote import connection
from sandbox.remote.serving import running
from sandbox.remote.settings import Settings
from tests.sandbox.conftest import SMALL, python
from tests.sandbox.network import ways_out
from tests.sandbox.network.test_gate import see_what_is_reached

pytestmark = pytest.mark.docker
ALLOWED = "allowed.example.com:443"


@pytest.fixture(scope="module")
def gated(backend: str) -> Iterator[Sandbox]:
    with sandbox.create(SandboxSpec(limits=SMALL, allow=(ALLOWED,)), backend) as box:
        yield box


@pytest.mark.parametrize(("request_line", "status", "says"), ways_out.REFUSALS)
def test_the_proxy_refuses_with_a_reason(gated: Sandbox, request_line: str, status: str, says: str) -> None:
    ways_out.see_a_refusal(gated, request_line, status, says)


def test_nothing_else_gets_out(gated: Sandbox) -> None:
    ways_out.see_that_nothing_else_gets_out(gated)


def test_a_program_behind_the_gate_behaves_as_without(gated: Sandbox) -> None:
    ways_out.see_that_programs_behave_as_without(gated)


def test_no_program_takes_the_place_of_the_proxy(gated: Sandbox) -> None:
    take = "import socket; socket.create_server(('127.0.0.1', 3128))"
    assert "Address already in use" in python(gated, take).stderr.text


@pytest.mark.skipif(not shutil.which("ip"), reason="iproute2 is not installed")
def test_an_allowed_public_host_is_reached_and_a_private_one_is_not(backend: str, tmp_path: Path) -> None:
    see_what_is_reached(backend, tmp_path)


def test_closing_leaves_no_thread_and_forks_have_ways_out_of_their_own(backend: str) -> None:
    before = threading.active_count()
    with sandbox.create(SandboxSpec(limits=SMALL, allow=(ALLOWED,)), backend) as box, box.fork() as child:
        ways_out.see_a_refusal(child, *ways_out.REFUSALS[0])
        assert [attempt.host for attempt in child.attempts] == ["evil.example.com"]  # type: ignore[attr-defined]
        assert box.attempts == []  # type: ignore[attr-defined]
    assert threading.active_count() == before


def test_a_client_gets_a_part_of_what_the_operator_registered(backend: str) -> None:
    try:
        with running(Settings(port=0, drain_s=5.0, backend=backend, allow=("*.example.com:443",))) as address:
            remote = f"remote:{address}"
            assert "allow_list" in sandbox.capabilities(remote).enforced
            with sandbox.create(SandboxSpec(limits=SMALL, allow=(ALLOWED,)), remote) as box:
                ways_out.see_a_refusal(box, *ways_out.REFUSALS[0])
                ways_out.see_that_nothing_else_gets_out(box)
            for wider in ("*.other.com:443", "example.com:443", "a.example.com:80"):
                with pytest.raises(SandboxUnavailable, match=r"Registered: \*\.example\.com:443"):
                    sandbox.create(SandboxSpec(allow=(wider,)), remote)
            connection.disconnect()
    finally:
        connection.disconnect()
