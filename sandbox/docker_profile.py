"""The system-call filter in Docker's form: it refuses what `seccomp.program` refuses."""

from __future__ import annotations

import errno
import json
import platform
from collections.abc import Sequence
from typing import Any

from sandbox import seccomp

_ARCHES = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}
_LOW_HALF = 0xFFFFFFFF


def profile(machine: str | None = None) -> str:
    """The profile as JSON, for `security_opt`.

    Numbers of other architectures are outside it, and the kernel kills who uses them.

    Raises:
        KeyError: no filter for this architecture (see `seccomp.supported`).
    """
    machine = machine or platform.machine()
    rules = [_refuse(sorted(seccomp.denied(machine)), errno.EPERM), _refuse(["clone3"], errno.ENOSYS)]
    for flag in _bits(seccomp.NEW_NAMESPACES | seccomp.NEW_TIME):
        rules.append(_refuse(["unshare"], errno.EPERM, _bit(flag)))
    for flag in _bits(seccomp.NEW_NAMESPACES):
        rules.append(_refuse(["clone"], errno.EPERM, _bit(flag)))
    for request in seccomp.TERMINAL_INJECTION:
        rules.append(_refuse(["ioctl"], errno.EPERM, _argument(1, "MASKED_EQ", _LOW_HALF, request)))
    for family in range(max(seccomp.FAMILIES)):
        if family not in seccomp.FAMILIES:
            rules.append(_refuse(["socket"], errno.EAFNOSUPPORT, _argument(0, "EQ", family)))
    rules.append(_refuse(["socket"], errno.EAFNOSUPPORT, _argument(0, "GT", max(seccomp.FAMILIES))))
    whole = {"defaultAction": "SCMP_ACT_ALLOW", "architectures": [_ARCHES[machine]], "syscalls": rules}
    return json.dumps(whole)


def _refuse(names: Sequence[str], error: int, *arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "names": list(names),
        "action": "SCMP_ACT_ERRNO",
        "errnoRet": error,
        "args": list(arguments),
    }


def _bit(flag: int) -> dict[str, Any]:
    return _argument(0, "MASKED_EQ", flag, flag)


def _argument(index: int, test: str, value: int, second: int = 0) -> dict[str, Any]:
    return {"index": index, "op": f"SCMP_CMP_{test}", "value": value, "valueTwo": second}


def _bits(mask: int) -> list[int]:
    return [1 << place for place in range(32) if mask >> place & 1]
