"""The program that runs inside the grading sandbox; its codec is also used on the host.

It stands alone (standard library only), because it is copied into the sandbox as one file. It reads one JSON
request from standard input and answers with one JSON line on standard output:

    {"nonce", "kind": "function", "source", "entry_point", "inputs": [[arg, ...], ...], "cpu_s", "wall_s"}
    {"nonce", "kind": "program",  "source", "inputs": [text, ...], "cpu_s", "wall_s"}
    {"nonce", "kind": "record",   "source", "entry_point", "check"}
        -> {"nonce", "results": [...], ...}

Each input runs in a child process of its own, so that one input cannot spoil the next. The candidate shares
this sandbox and may kill, patch or imitate this program: that gains nothing, because the sandbox holds the
inputs and never an expected output. The host compares.

Values cross as JSON: `None`, `bool`, `int`, `float`, `str` and `list` stand for themselves, every other
built-in type is an object with one key naming it. Types are matched exactly, so a subclass (an object that
claims to be equal to everything) has no encoding.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
from typing import Any, Protocol

MAX_DEPTH = 32
MAX_RESULT_BYTES = 1 << 20
POLL_S = 0.005


def encode(value: Any, depth: int = 0) -> Any:
    """Return the JSON form of a built-in value.

    Raises:
        ValueError: the value, or one inside it, is not exactly of a type on the list, or is nested too deep.
    """
    kind = type(value)
    if depth > MAX_DEPTH:
        raise ValueError(f"values may be nested {MAX_DEPTH} deep")
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is list:
        return [encode(item, depth + 1) for item in value]
    if kind is tuple:
        return {"tuple": [encode(item, depth + 1) for item in value]}
    if kind in (set, frozenset):
        items = [encode(item, depth + 1) for item in value]
        return {kind.__name__: sorted(items, key=json.dumps)}
    if kind is dict:
        return {"dict": [[encode(k, depth + 1), encode(v, depth + 1)] for k, v in value.items()]}
    if kind is bytes:
        return {"bytes": value.hex()}
    if kind is complex:
        return {"complex": [value.real, value.imag]}
    raise ValueError(f"results must be plain built-in values, not {kind.__name__}")


def decode(form: Any, depth: int = 0) -> Any:
    """Return the value of a JSON form; the inverse of `encode`.

    Raises:
        ValueError: the form was not made by `encode`.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"values may be nested {MAX_DEPTH} deep")
    if form is None or isinstance(form, (bool, int, float, str)):
        return form
    if isinstance(form, list):
        return [decode(item, depth + 1) for item in form]
    if not isinstance(form, dict) or len(form) != 1:
        raise ValueError("an encoded value is a JSON scalar, a list, or an object with one key")
    (name, content), *_ = form.items()
    try:
        if name == "bytes":
            return bytes.fromhex(content)
        if name == "complex":
            return complex(float(content[0]), float(content[1]))
        if name == "dict":
            return {decode(key, depth + 1): decode(value, depth + 1) for key, value in content}
        if name in ("tuple", "set", "frozenset"):
            return {"tuple": tuple, "set": set, "frozenset": frozenset}[name](
                [decode(item, depth + 1) for item in content]
            )
    except (TypeError, IndexError, KeyError) as error:
        raise ValueError(f"malformed {name}: {error}") from error
    raise ValueError(f"unknown type {name!r}")


class _Child(Protocol):
    """What a child process does; whatever it writes to `out_fd` is its result."""

    def __call__(self, out_fd: int) -> None: ...


def _function_child(source: str, entry_point: str, args: list[Any]) -> _Child:
    def run(out_fd: int) -> None:
        with open(os.devnull, "r+b") as null:
            os.dup2(null.fileno(), 0)
            os.dup2(null.fileno(), 1)
        dumps, write = json.dumps, os.write
        space: dict[str, Any] = {"__name__": "candidate"}
        exec(compile(source, "candidate.py", "exec"), space)
        head, _, method = entry_point.partition(".")  # "Solution.method": a class of its own for each input
        called = getattr(space[head](), method) if method else space[head]
        data = dumps(encode(called(*args))).encode()
        while data:
            data = data[write(out_fd, data) :]

    return run


def _program_child(source: str, stdin: str) -> _Child:
    def run(out_fd: int) -> None:
        with tempfile.TemporaryFile() as file:
            file.write(stdin.encode())
            file.seek(0)
            os.dup2(file.fileno(), 0)
        os.dup2(out_fd, 1)
        os.close(out_fd)
        sys.stdin, sys.stdout = open(0, encoding="utf-8"), open(1, "w", encoding="utf-8")  # noqa: SIM115
        exec(compile(source, "candidate.py", "exec"), {"__name__": "__main__"})
        sys.stdout.flush()

    return run


def _enter(child: _Child, out_fd: int, cpu_s: int) -> None:
    """Become the child: run it and leave this process without returning."""
    status = 1
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
        with open(os.devnull, "wb") as null:
            os.dup2(null.fileno(), 2)
        child(out_fd)
        status = 0
    except SystemExit as stop:
        status = 0 if stop.code is None else stop.code if isinstance(stop.code, int) else 1
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001 - the candidate's own failure, whatever it is, is an exit status
        status = 1
    finally:
        os._exit(status & 0xFF)


def _run(child: _Child, cpu_s: int, wall_s: float) -> dict[str, Any]:
    """Run one child to its end: `{"output", "exit"}` or `{"error"}`; `exit` is negative for a signal."""
    read_fd, write_fd = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_fd)
        _enter(child, write_fd, cpu_s)
    os.close(write_fd)
    os.set_blocking(read_fd, False)
    data, status, error = bytearray(), None, ""
    deadline = time.monotonic() + wall_s
    while not error:
        ended = status is not None
        if select.select([read_fd], [], [], 0 if ended else POLL_S)[0]:
            part = os.read(read_fd, 65536)
            data += part
            if len(data) > MAX_RESULT_BYTES:
                error = "output"
            if part:
                continue
            time.sleep(0.0005)  # its end is closed: it is about to exit, or only pretends to be
        if ended:
            break
        waited, code = os.waitpid(pid, os.WNOHANG)
        status = code if waited else None
        if status is None and time.monotonic() > deadline:
            error = "timeout"
    os.close(read_fd)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # whatever the child left running in its group
    if status is None:
        status = os.waitpid(pid, 0)[1]
    code = os.waitstatus_to_exitcode(status)
    if error or code == -signal.SIGXCPU:
        return {"error": error or "processor time"}
    return {"output": data.decode("utf-8", "replace"), "exit": code}


def _record(request: dict[str, Any]) -> dict[str, Any]:
    """Run a trusted-looking check on its own solution and note each call: line, arguments, result."""
    import random

    random.seed(0)
    space: dict[str, Any] = {"__name__": "candidate"}
    exec(compile(request["source"], "solution.py", "exec"), space)
    solution = space[request["entry_point"]]
    calls: list[dict[str, Any]] = []

    def candidate(*args: Any) -> Any:
        call: dict[str, Any] = {"line": sys._getframe(1).f_lineno, "args": [encode(arg) for arg in args]}
        result = solution(*args)
        call["result"] = encode(result)
        calls.append(call)
        return result

    exec(compile(request["check"], "check.py", "exec"), space)
    space["check"](candidate)
    return {"results": calls}


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    if request["kind"] == "record":
        try:
            return _record(request)
        except BaseException as error:  # noqa: BLE001 - a user's code: any failure of it is the answer
            return {"results": [], "failure": f"{type(error).__name__}: {error}"[:500]}
    results: list[dict[str, Any]] = []
    for given in request["inputs"]:
        if request["kind"] == "program":
            child = _program_child(request["source"], given)
        else:
            args = [decode(arg) for arg in given]
            child = _function_child(request["source"], request["entry_point"], args)
        results.append(_run(child, request["cpu_s"], request["wall_s"]))
        if results[-1].get("error") in ("timeout", "processor time"):
            break  # one endless loop decides; do not pay for it once an input
    return {"results": results}


def main() -> None:
    """Answer the request on standard input."""
    request = json.loads(sys.stdin.buffer.read())
    out_fd = os.dup(1)
    with open(os.devnull, "r+b") as null:
        os.dup2(null.fileno(), 0)
        os.dup2(null.fileno(), 1)
    line = json.dumps({"nonce": request["nonce"], **_answer(request)}) + "\n"
    with os.fdopen(out_fd, "w") as out:
        out.write(line)


if __name__ == "__main__":
    main()
