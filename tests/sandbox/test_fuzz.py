"""Fuzzing of what reads bytes from a sandbox: status lines, notices of a shell, output, files, layers.

The targets of `tests.sandbox.fuzz` take bytes and have seeds in `corpus/TARGET`, each of which is tried here once; the
properties below take what hypothesis makes up. `AGENT_RL_FUZZ_S=600 pytest -m slow -s tests/sandbox/test_fuzz.py`
mutates the seeds for that many seconds (guided by coverage with `pip install atheris`), and then tries the properties
for a quarter of that time. What fails is written into `corpus/` and tried first the next time.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase

from sandbox import SandboxLost, SandboxPathError, files
from sandbox.capture import HeadTail
from sandbox.conclude import Counters, Evidence, conclude
from sandbox.flatten import flatten
from sandbox.process import End, parse_status
from sandbox.shell import parse_notice
from sandbox.types import Output
from tests.sandbox.fuzz import campaign
from tests.sandbox.fuzz.targets import CORPUS, TARGETS, attempt, kept

_CORPUS = DirectoryBasedExampleDatabase(CORPUS / "hypothesis")
_TOKEN = "0123456789abcdef" * 2

Check = Callable[[int], None]


def fuzzed(*strategies: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], Check]:
    """Make a property into a function that tries so many examples; it can be called again and again."""

    def decorate(inner: Callable[..., None]) -> Check:
        def check(examples: int) -> None:
            settings(max_examples=examples, deadline=None, database=_CORPUS)(given(*strategies)(inner))()

        check.__name__ = inner.__name__
        return check

    return decorate


_json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["child-pid", "exit-code", "x"]), inner)
    ),
    max_leaves=6,
)
lines = st.binary(max_size=80) | _json_like.map(lambda value: repr(value).replace("'", '"').encode())


@fuzzed(lines)
@example(b'{"exit-code": -1}')
@example(b'{"exit-code": 1e999, "child-pid": true}')
@example(b'{"child-pid": 99999999999999999999}')
@example(b"[" * 100_000)
@example(b'{"exit-code": ' + b"9" * 5000 + b"}")
def status_lines(line: bytes) -> None:
    status = parse_status(line)
    assert status.exit_code is None or 0 <= status.exit_code <= 255
    assert status.child_pid is None or 0 < status.child_pid < 1 << 23


@fuzzed(st.binary(max_size=60), st.binary(max_size=60))
@example(_TOKEN.encode() + b" " + b"9" * 6000 + b"\n", b"")
def notices(before: bytes, after: bytes) -> None:
    assert parse_notice(before + after, _TOKEN) is None or _TOKEN.encode() in before + after
    whole = before + b"\n" + _TOKEN.encode() + b" 7\n" + after
    assert parse_notice(whole, _TOKEN) is not None
    code = parse_notice(_TOKEN.encode() + b" " + after, _TOKEN)
    assert code is None or 0 <= code <= 999


@fuzzed(st.lists(st.binary(max_size=50), max_size=8), st.integers(0, 40))
def outputs(chunks: list[bytes], limit: int) -> None:
    capture = HeadTail(limit)
    for chunk in chunks:
        capture.add(chunk)
    output = capture.output()
    assert len(output.head) + len(output.tail) <= limit
    assert output.total_bytes == sum(map(len, chunks))
    output.text.encode("utf-8")


class _Streams:
    def __init__(self, out: bytes, err: bytes) -> None:
        self.stdout, self.stderr = HeadTail(100), HeadTail(100)
        self.stdout.add(out)
        self.stderr.add(err)


_texts = st.binary(max_size=40) | st.sampled_from(
    [b"bwrap: execvp x: No such file or directory\n", b"bwrap: Can't chdir to /workspace: \xff\n", b"bwrap: "]
)


@fuzzed(
    _texts, _texts, st.integers(0, 255), st.sampled_from(["timeout", "killed", "output", None]), st.booleans()
)
def conclusions(out: bytes, err: bytes, code: int, killed: Any, full: bool) -> None:
    """Once a program has ended or was killed, no text that it wrote changes the verdict."""
    evidence = Evidence(disk_full=lambda: full, processes_full=lambda: False)
    streams: Any = _Streams(out, err)
    result = conclude(End(code, 0.0), killed, streams, Counters(None), evidence, 0.0, ".")
    other = conclude(End(code, 0.0), killed, _Streams(b"", b""), Counters(None), evidence, 0.0, ".")  # type: ignore[arg-type]
    assert (result.exit_code, result.reason) == (other.exit_code, other.reason)
    assert result.stderr == Output(head=err, total_bytes=len(err)) or len(err) > 50
    with contextlib.suppress(SandboxLost):
        conclude(End(None, 0.0), None, streams, Counters(None), evidence, 0.0, ".")


_names = st.sampled_from(["a", "b", "c", "d\udcff", "e\n"])
_kinds = st.sampled_from(
    ["file", "folder", "folder", "link", "up", "hard", "pipe", "socket", "whiteout", "opaque"]
)
_layer = st.lists(
    st.tuples(st.lists(_names, min_size=1, max_size=4), _kinds, st.binary(max_size=9)), max_size=12
)


@fuzzed(
    st.lists(_layer, min_size=1, max_size=3), st.lists(st.lists(_names, min_size=1, max_size=4), max_size=6)
)
def layers(trees: list[list[tuple[list[str], str, bytes]]], asked: list[list[str]]) -> None:
    """Whatever stands in the layers: bytes of a file beneath them or a refusal, and the same once flattened."""
    with _folder() as folder, contextlib.ExitStack() as opened:
        (folder / "outside").write_bytes(b"outside")
        roots = []
        for number, tree in enumerate(trees):
            root = folder / str(number)
            root.mkdir()
            for names, kind, data in tree:
                with contextlib.suppress(OSError):
                    _make(root, root.joinpath(*names), kind, data)
            roots.append(_open(opened, root))
        target = folder / "flat"
        target.mkdir()
        paths = ["/".join(names) for names in asked] + [
            "/".join(names) for tree in trees for names, _, _ in tree
        ]
        before = {path: _read(roots, path) for path in paths}
        assert b"outside" not in before.values()
        flatten(roots, _open(opened, target), None)
        assert {path: _read([_open(opened, target)], path) for path in paths} == before
        for path in paths:
            with contextlib.suppress(SandboxPathError):
                files.write(roots, path, b"new", None)
                assert _read(roots, path) == b"new"
        assert (folder / "outside").read_bytes() == b"outside"
        assert len(list(folder.iterdir())) == len(trees) + 2


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    folder = tempfile.mkdtemp(dir="/dev/shm")
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder)


def _open(opened: contextlib.ExitStack, path: Path) -> int:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    opened.callback(os.close, fd)
    return fd


def _read(roots: list[int], path: str) -> bytes | None:
    try:
        return files.read(roots, path, 100)
    except SandboxPathError:
        return None


def _make(root: Path, path: Path, kind: str, data: bytes) -> None:
    if path.parent.resolve() != path.parent:  # it would lead out of this layer
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "file":
        with open(path, "xb") as made:  # not into a pipe that stands there
            made.write(data)
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to("/dev/shm")
    elif kind == "up":
        path.symlink_to("../" * len(path.relative_to(root).parts) + "outside")
    elif kind == "hard":
        for first in root.rglob("*"):
            if first.is_file() and not first.is_symlink():
                os.link(first, path)
                break
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))
    elif kind == "whiteout":
        os.mknod(path, stat.S_IFCHR)
    else:
        path.mkdir()
        os.setxattr(path, "user.overlay.opaque", b"y")


PROPERTIES: list[Check] = [status_lines, notices, outputs, conclusions, layers]


@pytest.mark.parametrize("check", PROPERTIES, ids=lambda check: check.__name__)
def test_in_short(check: Check) -> None:
    check(150)


@pytest.mark.parametrize("target", TARGETS)
def test_every_input_of_the_corpus(target: str) -> None:
    inputs = kept(target)
    assert inputs, f"no seeds in {CORPUS / target}; run python -m tests.sandbox.fuzz.seeds"
    for path in inputs:
        try:
            attempt(target, path.read_bytes())
        except Exception as error:
            raise AssertionError(f"{path} fails: {error}") from error


def test_the_corpus_is_small() -> None:
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < 1 << 20


def test_mutations_are_tried_and_what_fails_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(data: bytes) -> None:
        assert len(data) < 3

    monkeypatch.setattr(campaign, "CORPUS", tmp_path)
    monkeypatch.setattr("tests.sandbox.fuzz.targets.CORPUS", tmp_path)
    monkeypatch.setattr("tests.sandbox.fuzz.targets.TARGETS", {"status": fails})
    (tmp_path / "status").mkdir()
    (tmp_path / "status" / "seed").write_bytes(b"ab")
    outcome = campaign.mutate("status", 10.0, seed=1)
    assert len(outcome.findings) == campaign.MOST_FINDINGS
    assert all(len(path.read_bytes()) >= 3 for path in kept_in(tmp_path / "status") if path.name != "seed")


def kept_in(folder: Path) -> list[Path]:
    found = sorted(folder.iterdir())
    assert 1 < len(found) <= 1 + campaign.MOST_FINDINGS
    return found


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_at_length() -> None:
    seconds = float(os.environ.get("AGENT_RL_FUZZ_S", "600"))
    outcomes = [campaign.run(target, seconds / len(TARGETS)) for target in TARGETS]
    for outcome in outcomes:
        how = "guided" if outcome.guided else "mutation alone"
        print(
            f"{outcome.target:<8} {outcome.executions:>9} executions ({how}) {list(outcome.findings)}",
            flush=True,
        )
    until, rounds = time.monotonic() + seconds / 4, 0
    while time.monotonic() < until or rounds < 2:
        for check in PROPERTIES:
            check(1000)
        rounds += 1
    print(f"properties {1000 * rounds} executions each: {', '.join(check.__name__ for check in PROPERTIES)}")
    assert not [outcome for outcome in outcomes if outcome.findings]
    assert all(outcome.executions > 0 for outcome in outcomes)
