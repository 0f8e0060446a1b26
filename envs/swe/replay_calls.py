"""The program that calls functions inside a sandbox without pytest; copied into it with the codec of values.

Standard input: `{"nonce", "library", "roots", "cpu_s", "wall_s", "calls": [{"module", "function", "args", "kwargs"}]}`;
standard output: one JSON line `{"nonce", "results": [...]}`. Each call runs in a process of its own. A result is
`{"value", "args"}` (the arguments as the call left them) or `{"raised": type name}`, encoded by `envs.code.driver`.

The code under test may patch or imitate this program: that gains nothing, because no expected result is here.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import select
import signal
import sys
import time
from typing import Any

MAX_RESULT_BYTES = 1 << 20


def call(request: dict[str, Any], wanted: dict[str, Any], encode: Any, decode: Any) -> dict[str, Any]:
    """Import the module, call the function, encode what it did."""
    sys.path.extend(request["roots"])
    args = [decode(arg) for arg in wanted["args"]]
    kwargs = {name: decode(arg) for name, arg in wanted["kwargs"].items()}
    function: Any = importlib.import_module(wanted["module"])
    for name in wanted["function"].split("."):
        function = getattr(function, name)
    try:
        value = function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - what the code under test raises is its result
        return {"raised": type(error).__name__}
    return {"value": encode(value), "args": [encode(arg) for arg in args]}


def _child(request: dict[str, Any], wanted: dict[str, Any], out_fd: int, encode: Any, decode: Any) -> None:
    """Become the child: call, write the result, leave this process without returning."""
    status, write, leave, dumps = 1, os.write, os._exit, json.dumps
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (request["cpu_s"], request["cpu_s"] + 1))
        with open(os.devnull, "r+b") as null:
            for fd in (0, 1, 2):
                os.dup2(null.fileno(), fd)
        data = dumps(call(request, wanted, encode, decode)).encode()
        while data:
            data = data[write(out_fd, data) :]
        status = 0
    finally:
        leave(status)


def _replayed(request: dict[str, Any], wanted: dict[str, Any], encode: Any, decode: Any) -> dict[str, Any]:
    read_fd, write_fd = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_fd)
        _child(request, wanted, write_fd, encode, decode)
    os.close(write_fd)
    data, deadline, timed_out = bytearray(), time.monotonic() + request["wall_s"], False
    while len(data) <= MAX_RESULT_BYTES:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([read_fd], [], [], left)[0]:
            timed_out = True
            break
        part = os.read(read_fd, 65536)
        if not part:
            break
        data += part
    os.close(read_fd)
    if timed_out or len(data) > MAX_RESULT_BYTES:
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if timed_out or status == -signal.SIGXCPU:
            return {"error": "timeout"}
        if status == 0 and len(data) <= MAX_RESULT_BYTES:
            return {"output": data.decode("utf-8", "replace")}
    return {"error": "no result"}


def main() -> None:
    """Answer the request on standard input."""
    request = json.loads(sys.stdin.buffer.read())
    out_fd = os.dup(1)
    sys.path.insert(0, request["library"])
    from envs.code.driver import decode, encode

    sys.path.remove(request["library"])
    for name in ("envs", "envs.code", "envs.code.driver"):
        sys.modules.pop(name, None)  # a repository may have a package of this name
    results: list[dict[str, Any]] = []
    for wanted in request["calls"]:
        results.append(_replayed(request, wanted, encode, decode))
        if results[-1].get("error") == "timeout":
            break  # one endless loop decides
    with os.fdopen(out_fd, "w") as out:
        out.write(json.dumps({"nonce": request["nonce"], "results": results}) + "\n")


if __name__ == "__main__":
    main()
