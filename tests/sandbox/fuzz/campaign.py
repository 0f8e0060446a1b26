"""A run over one target: its corpus, then mutations of it, guided by coverage where `atheris` is installed."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.sandbox.fuzz.places import FOLDER
from tests.sandbox.fuzz.targets import CORPUS, TOKEN, attempt, kept

MAX_BYTES = 1 << 16
MOST_FINDINGS = 5
WORDS: dict[str, tuple[bytes, ...]] = {
    "status": (b'"child-pid"', b'"exit-code"', b"{", b"}", b": ", b"-1", b"1e999", b"true", b"\n", b"[" * 50),
    "notice": (TOKEN.encode(), b" ", b"\n", b"0\n", b"255\n", b"\xc2\xb2"),
    "frames": (b"\x01\0\0\0\0\0\0", b"\x02\0\0\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\x01"),
    "result": (b'"exit_code"', b'"reason"', b"null", b"1e308", b"NaN", b'"parts": [', b"9007199254740993"),
    "heads": (b'{"parts":[]', b'"id":"', b'"missing":{', b"\\ud800", b"[" * 50, b"\0\0\0\x02{}"),
    "tar": (b"ustar  \0", b"../", b"/", b"00000001000\0", b" path=", b"GNU.sparse."),
    "tree": (b"\nread ", b"\nwrite ", b"\nlink ", b"\nhard ", b"\nlayer", b"\nwhiteout ", b"\nopaque ", b"..", b"/"),
    "connect": (b"CONNECT ", b" HTTP/1.1\r\n", b"\r\n\r\n", b"example.org:443", b"Host: ", b"\0", b"@", b":"),
}  # fmt: skip
WORDS["launch"] = WORDS["status"]


@dataclass(frozen=True)
class Outcome:
    """What a run did: executions, and the inputs that failed, kept in the corpus."""

    target: str
    guided: bool
    executions: int
    findings: tuple[str, ...]


def mutated(seeds: list[bytes], words: tuple[bytes, ...], draw: random.Random) -> bytes:
    """One seed with a few changes: bits, bytes, words, pieces of it and of another seed."""
    data = bytearray(draw.choice(seeds))
    for _ in range(1 << draw.randrange(4)):
        at = draw.randrange(len(data) + 1)
        end = min(len(data), at + (1 << draw.randrange(11)))
        kind = draw.randrange(7)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << draw.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = draw.choice((0, 255, 127, 128, 10, 32, 48, 57, draw.randrange(256)))
        elif kind == 2:
            data[at:at] = draw.choice(words)
        elif kind == 3 and (word := draw.choice(words)):
            data[at : at + len(word)] = word
        elif kind == 4:
            del data[at:end]
        elif kind == 5:
            data[at:at] = data[at:end] * draw.randrange(1, 4)
        else:
            other = draw.choice(seeds)
            start = draw.randrange(len(other) + 1)
            data[at:at] = other[start : start + end - at]
    return bytes(data[:MAX_BYTES])


def run(target: str, seconds: float) -> Outcome:
    """Fuzz for so many seconds; what fails is written into the corpus."""
    return (mutate if importlib.util.find_spec("atheris") is None else _guided)(target, seconds)


def mutate(target: str, seconds: float, *, seed: int | None = None) -> Outcome:
    """The same by mutation alone."""
    seeds, draw = [path.read_bytes() for path in kept(target)], random.Random(seed)
    until, count, findings = time.monotonic() + seconds, 0, []
    while time.monotonic() < until:
        data, count = mutated(seeds, WORDS[target], draw), count + 1
        try:
            attempt(target, data)
        except Exception as error:  # noqa: BLE001 - whatever comes out of a target is a finding
            findings.append(f"{_keep(target, data)}: {type(error).__name__}: {error}"[:500])
            if len(findings) == MOST_FINDINGS:
                break
    return Outcome(target, False, count, tuple(findings))


def _keep(target: str, data: bytes) -> str:
    path = CORPUS / target / f"found-{hashlib.sha256(data).hexdigest()[:16]}"
    path.write_bytes(data)
    return path.name


def _guided(target: str, seconds: float) -> Outcome:
    before = {path.name for path in kept(target)}
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir="/dev/shm") as folder:
        words = Path(folder, "words")
        lines = ("".join(f"\\x{byte:02x}" for byte in word) for word in WORDS[target])
        words.write_text("".join(f'"{line}"\n' for line in lines))
        reached = Path(folder, "reached")
        reached.mkdir()
        options = [f"-max_total_time={max(1, int(seconds))}", f"-dict={words}", f"-max_len={MAX_BYTES}"]
        options += ["-timeout=10", "-rss_limit_mb=2048", f"-artifact_prefix={CORPUS / target}/found-"]
        command = [
            sys.executable,
            "-m",
            "tests.sandbox.fuzz.guided",
            target,
            str(reached),
            str(CORPUS / target),
        ]
        done = subprocess.run(
            [*command, *options, "-print_final_stats=1"],
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, FOLDER: folder},
            check=False,
        )
    executions = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    new = sorted({path.name for path in kept(target)} - before)
    if done.returncode != 0 and not new:
        new = [f"the run itself failed: {done.stderr[-2000:]}"]
    return Outcome(target, True, int(executions[1]) if executions else 0, tuple(new))
