"""Limits and specs as they travel."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import pydantic

from sandbox.errors import SandboxUnavailable
from sandbox.remote import wire
from sandbox.types import Limits, SandboxSpec

_LIMITS = pydantic.TypeAdapter(Limits)
_CARRIED = frozenset({"limits", "files", "env", "base", "require", "allow"})


def limits_of(values: Mapping[str, int | float | None]) -> Limits:
    """Limits that a client asks for.

    Raises:
        Malformed: a name that is no limit, or a value of the wrong type.
    """
    unknown = values.keys() - {item.name for item in dataclasses.fields(Limits)}
    if unknown:
        raise wire.Malformed(f"no such limit: {sorted(unknown)[0][:80]!r}")
    try:
        return _LIMITS.validate_python(dict(values))
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise wire.Malformed(f"limits.{first['loc'][0]}: {first['msg']}") from error


def create_frame(spec: SandboxSpec) -> list[bytes]:
    """A frame that asks for a sandbox.

    Raises:
        SandboxUnavailable: the spec asks for something that is not served to clients.
        ValueError: a limit is not finite, or text that no program could be given.
    """
    blank = SandboxSpec()
    for item in dataclasses.fields(spec):
        if item.name not in _CARRIED and getattr(spec, item.name) != getattr(blank, item.name):
            raise SandboxUnavailable(
                f"a remote client cannot ask for spec.{item.name}; leave it out, or run the sandbox on this machine"
            )
    limits = dataclasses.asdict(spec.limits)
    for name, value in limits.items():
        if value is not None and not math.isfinite(value):
            raise ValueError(f"limits.{name} must be finite, not {value!r}")
    fields = {
        "limits": limits,
        "env": len(spec.env),
        "files": len(spec.files),
        "base": spec.base,
        "require": sorted(spec.require),
        "allow": list(spec.allow),
    }
    parts = list(wire.pairs(spec.env))
    for path, data in spec.files.items():
        parts += [path.encode("utf-8", "surrogateescape"), bytes(data)]
    return wire.encode(wire.CreateHead, fields, parts)
