"""The filter, run by a small interpreter of classic BPF for both processor architectures."""

from __future__ import annotations

import errno
import struct

import pytest

from sandbox import seccomp

ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, KILL = 0x7FFF0000, 0x80000000


def judge(
    machine: str,
    number: int,
    *arguments: int,
    arch: int | None = None,
    spare: frozenset[str] = frozenset(),
) -> int:
    """The filter's verdict on one system call."""
    values = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number, ARCH[machine] if arch is None else arch, 0, *values)
    code = list(struct.iter_unpack("=HBBI", seccomp.program(machine, spare=spare)))
    at, accumulator = 0, 0
    while True:
        op, if_true, if_false, value = code[at]
        at += 1
        if op == 0x06:
            return int(value)
        if op == 0x20:
            accumulator = struct.unpack_from("=I", data, value)[0]
        else:
            test = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[
                op
            ]
            at += if_true if test else if_false


def error(number: int) -> int:
    return 0x00050000 | number


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_verdicts(machine: str) -> None:
    column = ["x86_64", "aarch64"].index(machine)
    unshare, clone, clone3, ioctl, socket = [(272, 97), (56, 220), (435, 435), (16, 29), (41, 198)]
    for name, number in seccomp.denied(machine).items():
        assert judge(machine, number) == error(errno.EPERM), name
    assert judge(machine, clone3[column]) == error(errno.ENOSYS)
    for flag in (0x10000000, 0x00020000, 0x40000000 | 17):
        assert judge(machine, unshare[column], flag) == error(errno.EPERM)
        assert judge(machine, clone[column], flag) == error(errno.EPERM)
    assert judge(machine, unshare[column], 0x400) == ALLOW  # CLONE_FILES
    assert judge(machine, clone[column], 0x3D0F00) == ALLOW  # a thread of libc
    assert judge(machine, clone[column], 0x01200011) == ALLOW  # fork of libc
    for request in (0x5412, 0x541C):
        assert judge(machine, ioctl[column], 0, request) == error(errno.EPERM)
        assert judge(machine, ioctl[column], 0, request | 0xFF << 32) == error(errno.EPERM)
    assert judge(machine, ioctl[column], 0, 0x5401) == ALLOW
    for family in (1, 2, 10, 16):
        assert judge(machine, socket[column], family) == ALLOW
    for family in (0, 17, 38, 40, 44):
        assert judge(machine, socket[column], family) == error(errno.EAFNOSUPPORT)
    for row in ((0, 63), (1, 64), (59, 221), (231, 94)):  # read, write, execve, exit_group
        assert judge(machine, row[column]) == ALLOW


def test_other_instruction_sets_are_killed_or_absent() -> None:
    assert judge("x86_64", 1, arch=0x40000003) == KILL  # 32-bit calls
    assert judge("x86_64", 0x40000000 | 41, 40) == error(errno.ENOSYS)  # x32
    assert not seccomp.supported("riscv64")


def test_the_program_fits_the_kernels_limit() -> None:
    for machine in ARCH:
        assert len(seccomp.program(machine)) // 8 <= 4096


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_spared_calls_pass_and_the_others_do_not(machine: str) -> None:
    spare = frozenset({"mount", "unshare"})
    column = ["x86_64", "aarch64"].index(machine)
    for name, number in seccomp.denied(machine).items():
        allowed = judge(machine, number, spare=spare) == ALLOW
        assert allowed == (name in spare), name
    assert judge(machine, (272, 97)[column], 0x10000000, spare=spare) == ALLOW
    assert judge(machine, (56, 220)[column], 0x10000000, spare=spare) == ALLOW
    assert judge(machine, (56, 220)[column], 0x10000000, spare=spare - {"unshare"}) == error(errno.EPERM)
