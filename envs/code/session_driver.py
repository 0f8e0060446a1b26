"""The program of a Python session, run inside the agent's sandbox; standard library only.

Each line on standard input is one piece of source, base64; each is answered by one line, base64: what it
printed, and the traceback where it failed. Variables stay from one to the next. The agent's code shares this
process and may spoil it: it spoils its own observations.
"""

from __future__ import annotations

import base64
import linecache
import os
import sys
import tempfile
import traceback
from typing import Any

HEAD = TAIL = 32_768
"""Bytes kept of what one piece printed."""


def printed(file: Any) -> bytes:
    """Head and tail of a file."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = bytes(file.read(HEAD))
    if size <= HEAD + TAIL:
        return head + bytes(file.read())
    file.seek(size - TAIL)
    return head + b"\n[%d bytes left out]\n" % (size - HEAD - TAIL) + bytes(file.read())


def run(source: str, number: int, space: dict[str, Any]) -> None:
    """Run one piece; a failure is printed as a traceback of that piece alone."""
    name = f"<python {number}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    try:
        exec(compile(source, name, "exec"), space)
    except SystemExit as stop:
        sys.stdout.flush()
        print(f"[exit status {stop.code if stop.code is not None else 0}]", file=sys.stderr)
    except BaseException as error:  # noqa: BLE001 - the agent's own failure, whatever it is, is printed
        sys.stdout.flush()
        trace = error.__traceback__
        traceback.print_exception(type(error), error, trace.tb_next if trace is not None else None)


def main() -> None:
    """Answer until the input ends."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.dup(1)
    with open(os.devnull, "rb") as null:
        os.dup2(null.fileno(), 0)
    space: dict[str, Any] = {"__name__": "__main__"}
    sys.path.insert(0, "")
    for number, line in enumerate(requests, 1):
        with tempfile.TemporaryFile() as out:
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
            run(base64.b64decode(line).decode("utf-8", "surrogatepass"), number, space)
            sys.stdout.flush()
            sys.stderr.flush()
            answer = base64.b64encode(printed(out)) + b"\n"
        while answer:
            answer = answer[os.write(answers, answer) :]


if __name__ == "__main__":
    main()
