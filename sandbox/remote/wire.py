"""What client and server say to each other: frames of a JSON head and raw parts, the same in both directions.

    | length of the head, 4 bytes, big-endian | head, JSON | part 0 | part 1 | ...

A head lists the lengths of its parts, and they must add up to the last byte. All that a program is given or gives
(arguments, environment, paths, standard streams, files) is a part, so nothing is escaped and no text is decoded.
Both ends take the other for hostile: whatever arrives either is one of the heads below or raises `Malformed`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, TypeVar

import pydantic
from pydantic import Field

from sandbox.types import KIB, MIB, ExecResult, Output, Reason, Usage

PROTOCOL = "1"
PROTOCOL_HEADER = "agent-rl-protocol"
LEASE_HEADER = "agent-rl-lease"
REQUEST_HEADER = "agent-rl-request"
MEDIA_TYPE = "application/x-agent-rl"
MAX_HEAD_BYTES = 1 * MIB
MAX_PARTS = 50_000
MAX_MESSAGE_BYTES = 4 * MIB
"""Of one request through a WebSocket; a client sends larger ones over HTTP."""
CHUNK_BYTES = 256 * KIB
MAX_POLL_S = 30.0
"""A server answers a numbered request by then, if only by `still running`."""
_LENGTH = struct.Struct(">I")

Count = Annotated[int, Field(ge=0, le=2**53)]
Seconds = Annotated[float, Field(ge=0)]
Name = Annotated[str, Field(max_length=512)]


class Malformed(ValueError):
    """Bytes that are no frame of this protocol."""


class Head(pydantic.BaseModel):
    """What every head has."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
    parts: Annotated[list[Count], Field(max_length=MAX_PARTS)] = []


class CreateHead(Head):
    """Parts: name and value of each variable, then path and contents of each file."""

    limits: dict[str, int | float | None]
    env: Count
    files: Count
    base: Name
    require: Annotated[list[Name], Field(max_length=100)]
    allow: Annotated[list[Name], Field(max_length=100)] = []


class ExecHead(Head):
    """Parts: the arguments, name and value of each variable, the folder, standard input."""

    argv: Count
    env: Count
    timeout_s: float | None


class RunHead(Head):
    """Part: the command of a shell."""

    timeout_s: float | None


class ReadHead(Head):
    """Part: the path."""

    max_bytes: int


class WriteHead(Head):
    """Parts: the path and the contents."""


class RestoreHead(Head):
    """No parts."""

    snapshot: Name


class ContentHead(Head):
    """Part: the contents of a file."""


class MadeHead(Head):
    """Something was made; no parts."""

    id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class HeldHead(Head):
    """How much a snapshot holds; no parts."""

    bytes: Count


class ReportHead(Head):
    """What the server's backend enforces; no parts."""

    backend: Name
    enforced: Annotated[list[Name], Field(max_length=1000)]
    missing: dict[Name, Annotated[str, Field(max_length=10_000)]]


class LeaseHead(ReportHead):
    """A lease was opened; no parts."""

    lease: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    lease_s: Annotated[float, Field(gt=0, le=86_400)]
    max_body_bytes: Count
    max_timeout_s: Annotated[float, Field(gt=0, le=31_536_000)]


class PostureHead(Head):
    """What is enforced on a program; no parts."""

    posture: dict[str, pydantic.JsonValue]


class ResultHead(Head):
    """What a program did. Parts: head and tail of standard output, head and tail of standard error."""

    exit_code: Annotated[int, Field(ge=-(2**31), le=2**32)] | None
    reason: Reason
    wall_s: Seconds
    cpu_s: Seconds
    queue_s: Seconds
    max_rss_bytes: Count
    stdout_bytes: Count
    stderr_bytes: Count


class RefusalHead(Head):
    """Why the server refused; see `refusals`. No parts."""

    code: Name
    message: Annotated[str, Field(max_length=4000)]


class DoneHead(Head):
    """It was done and there is nothing to say; no parts."""


_Head = TypeVar("_Head", bound=Head)


def encode(kind: type[Head], fields: Mapping[str, Any], parts: Iterable[bytes] = ()) -> list[bytes]:
    """The pieces of a frame, in order; large parts are not copied.

    Raises:
        Malformed: a field is out of its range, or there are too many parts.
    """
    pieces = list(parts)
    try:
        head = kind.model_validate({**fields, "parts": [len(piece) for piece in pieces]})
        text = head.model_dump_json().encode()
    except pydantic.ValidationError as error:
        raise Malformed(_told(kind, error)) from error
    except ValueError as error:  # surrogates, which JSON cannot carry
        raise Malformed(f"no {kind.__name__}: {error}") from error
    if len(text) > MAX_HEAD_BYTES:
        raise Malformed(f"a {kind.__name__} takes {len(text)} bytes; the limit is {MAX_HEAD_BYTES}")
    return [_LENGTH.pack(len(text)) + text, *pieces]


def decode(kind: type[_Head], data: bytes | bytearray) -> tuple[_Head, list[bytes]]:
    """The head and the parts of a whole frame.

    Raises:
        Malformed: it is not a frame with a head of this kind.
    """
    if len(data) < _LENGTH.size:
        raise Malformed(f"a frame begins with 4 bytes of length, but there are {len(data)} bytes")
    (length,) = _LENGTH.unpack_from(data)
    start = _LENGTH.size + length
    if length > MAX_HEAD_BYTES or start > len(data):
        raise Malformed(f"a head of {length} bytes does not fit a frame of {len(data)}")
    try:
        head = kind.model_validate_json(data[_LENGTH.size : start])
    except pydantic.ValidationError as error:
        raise Malformed(_told(kind, error)) from error
    if start + sum(head.parts) != len(data):
        raise Malformed(f"the parts take {sum(head.parts)} bytes, but {len(data) - start} follow the head")
    parts, view = [], memoryview(data)
    for size in head.parts:
        parts.append(bytes(view[start : start + size]))
        start += size
    return head, parts


def chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Cut pieces into what one write to a socket takes."""
    for piece in pieces:
        if len(piece) <= CHUNK_BYTES:
            yield piece
            continue
        view = memoryview(piece)
        for start in range(0, len(piece), CHUNK_BYTES):
            yield bytes(view[start : start + CHUNK_BYTES])


def pairs(mapping: Mapping[str, str]) -> Iterator[bytes]:
    """Names and values as parts.

    Raises:
        UnicodeEncodeError: text that no program could be given (a ValueError).
    """
    for name, value in mapping.items():
        yield os.fsencode(name)
        yield os.fsencode(value)


def take(parts: list[bytes], *counts: int) -> list[list[bytes]]:
    """Split parts into groups of these sizes.

    Raises:
        Malformed: they do not add up.
    """
    if sum(counts) != len(parts):
        raise Malformed(f"{sum(counts)} parts were announced, but there are {len(parts)}")
    groups, start = [], 0
    for count in counts:
        groups.append(parts[start : start + count])
        start += count
    return groups


def mapping_of(parts: list[bytes]) -> dict[str, str]:
    """The inverse of `pairs`."""
    texts = [os.fsdecode(part) for part in parts]
    return dict(zip(texts[::2], texts[1::2], strict=True))


def result_frame(result: ExecResult, queue_s: float) -> list[bytes]:
    """A frame of what a program did."""
    out, err, usage = result.stdout, result.stderr, result.usage
    fields = {
        "exit_code": result.exit_code,
        "reason": result.reason,
        "wall_s": max(0.0, usage.wall_s),
        "cpu_s": max(0.0, usage.cpu_s),
        "queue_s": max(0.0, queue_s),
        "max_rss_bytes": usage.max_rss_bytes,
        "stdout_bytes": out.total_bytes,
        "stderr_bytes": err.total_bytes,
    }
    return encode(ResultHead, fields, (out.head, out.tail, err.head, err.tail))


def result_of(data: bytes | bytearray, waited_s: float) -> ExecResult:
    """The inverse of `result_frame`; `waited_s` is what the client itself waited for a free place.

    Raises:
        Malformed: it is no such frame, or contradicts itself.
    """
    head, parts = decode(ResultHead, data)
    (out_head, out_tail), (err_head, err_tail) = take(parts, 2, 2)
    for name, total, kept in (
        ("stdout", head.stdout_bytes, len(out_head) + len(out_tail)),
        ("stderr", head.stderr_bytes, len(err_head) + len(err_tail)),
    ):
        if total < kept:
            raise Malformed(f"{name} has {total} bytes in all, but {kept} were kept")
    return ExecResult(
        exit_code=head.exit_code,
        stdout=Output(head=out_head, tail=out_tail, total_bytes=head.stdout_bytes),
        stderr=Output(head=err_head, tail=err_tail, total_bytes=head.stderr_bytes),
        reason=head.reason,
        usage=Usage(
            wall_s=head.wall_s,
            cpu_s=head.cpu_s,
            max_rss_bytes=head.max_rss_bytes,
            queue_s=head.queue_s + waited_s,
        ),
    )


def _told(kind: type[Head], error: pydantic.ValidationError) -> str:
    """Where and why, without the input: it may be long, or secret."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(step) for step in first["loc"])[:200]
    return f"no {kind.__name__}: {where + ': ' if where else ''}{first['msg'][:300]}"
