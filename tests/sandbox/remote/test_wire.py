"""Frames: whatever arrives is one, or is refused by an error of ours; a hostile server included."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox import ExecResult, Limits, Output, SandboxError, Usage
from sandbox.remote import wire
from sandbox.remote.client import RemoteSandbox
from sandbox.remote.connection import Connection, Lease
from sandbox.remote.refusals import REFUSALS, error_of

HEADS = [kind for kind in vars(wire).values() if isinstance(kind, type) and issubclass(kind, wire.Head)]
outputs = st.builds(
    lambda head, tail, cut: Output(head=head, tail=tail, total_bytes=len(head) + len(tail) + cut),
    st.binary(max_size=50),
    st.binary(max_size=50),
    st.integers(0, 2**40),
)
results = st.builds(
    ExecResult,
    exit_code=st.none() | st.integers(-64, 255),
    stdout=outputs,
    stderr=outputs,
    reason=st.sampled_from(["ok", "timeout", "oom", "pids", "disk", "output", "killed"]),
    usage=st.builds(
        Usage, wall_s=st.floats(0, 1e6), queue_s=st.just(0.0), max_rss_bytes=st.integers(0, 2**40)
    ),
)


@given(results)
def test_results_survive(result: ExecResult) -> None:
    assert wire.result_of(b"".join(wire.result_frame(result, 0.0)), 0.0) == result


@given(st.sampled_from(HEADS), st.binary(max_size=300))
def test_any_bytes_are_a_frame_or_malformed(kind: type[wire.Head], data: bytes) -> None:
    with contextlib.suppress(wire.Malformed):
        wire.decode(kind, data)


@given(results, st.data())
def test_a_damaged_frame_is_malformed_or_still_sound(result: ExecResult, data: st.DataObject) -> None:
    frame = bytearray(b"".join(wire.result_frame(result, 0.0)))
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    frame = frame[: data.draw(st.integers(0, len(frame)))] if data.draw(st.booleans()) else frame
    with contextlib.suppress(wire.Malformed):
        read = wire.result_of(frame, 0.0)
        assert read.stdout.truncated_bytes >= 0
        assert read.stderr.truncated_bytes >= 0


@given(
    st.dictionaries(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")), max_size=5)
)
def test_variables_survive(variables: dict[str, str]) -> None:
    assert wire.mapping_of(list(wire.pairs(variables))) == variables


def test_chunks_put_together_are_the_pieces() -> None:
    pieces = [b"a", bytes(wire.CHUNK_BYTES), b"c" * (2 * wire.CHUNK_BYTES + 1)]
    cut = list(wire.chunks(pieces))
    assert b"".join(cut) == b"".join(pieces)
    assert max(map(len, cut)) == wire.CHUNK_BYTES


@pytest.mark.parametrize("code", [*REFUSALS, "nonsense", "\x1b[2J"])
def test_codes_decide_and_text_is_printable(code: str) -> None:
    error = error_of(code, "\x1b]0;evil\x07SandboxClosed")
    assert isinstance(error, SandboxError | ValueError)
    assert "\x1b" not in str(error)


class Liar:
    """A server that answers the same bytes to whatever it is asked."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.answer = b""
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(5)

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self._listening.accept()
            except OSError:
                return
            with link, contextlib.suppress(OSError):
                link.settimeout(2)
                link.recv(65536)
                link.sendall(self.answer)


@pytest.fixture(scope="module")
def liar() -> Iterator[Liar]:
    with contextlib.closing(Liar()) as server:
        yield server


def answer(body: bytes, status: int = 200, headers: str = "") -> bytes:
    start = f"HTTP/1.1 {status} X\r\nContent-Type: {wire.MEDIA_TYPE}\r\n{headers}"
    return f"{start}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


bodies = st.binary(max_size=100) | st.builds(
    lambda head, rest: len(head).to_bytes(4, "big") + head + rest,
    st.sampled_from(
        [b"{}", b'{"parts":[1]}', b'{"id":"x"}', b'{"code":"ok","message":""}', b"[]", b'{"parts":[-1]}']
    ),
    st.binary(max_size=3),
)


@settings(max_examples=60, deadline=None, database=None)
@given(
    lie=st.binary(max_size=100)
    | st.builds(answer, bodies, st.sampled_from([200, 202, 204, 302, 400, 401, 410, 500, 503, 999]))
    | st.builds(lambda body: answer(body, 200, "Content-Encoding: gzip\r\n"), bodies),
    call=st.sampled_from(
        ["exec", "read", "write", "fork", "posture", "snapshot", "close", "report", "lease"]
    ),
)
def test_a_hostile_server_raises_errors_of_ours(liar: Liar, lie: bytes, call: str) -> None:
    liar.answer = lie
    link = Connection(liar.address, None, retry_s=0.001, busy_s=0.001)
    head = wire.LeaseHead(
        lease="0" * 32,
        lease_s=1e3,
        max_body_bytes=1000,
        max_timeout_s=0.1,
        backend="b",
        enforced=[],
        missing={},
    )
    box = RemoteSandbox(link, Lease(head), "1" * 32, Limits())
    calls = {
        "exec": lambda: box.exec(["x"]),
        "read": lambda: box.read("f"),
        "write": lambda: box.write("f", b""),
        "fork": box.fork,
        "posture": box.posture,
        "snapshot": box.snapshot,
        "close": box.close,
        "report": link.report,
        "lease": link.lease,
    }
    try:
        with contextlib.suppress(SandboxError, ValueError):
            calls[call]()
    finally:
        link.close()


def test_a_server_that_never_stops_talking(liar: Liar) -> None:
    body = bytes(4 << 20)
    liar.answer = answer(body)
    link = Connection(liar.address, None, retry_s=0.001)
    with pytest.raises(SandboxError, match="more than"):
        link.report()
    link.close()
