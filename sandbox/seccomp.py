"""The system-call filter: a deny list compiled to classic BPF here, so that no native library is needed.

Refused calls return EPERM, so that programs see an error and go on; `clone3` returns ENOSYS because its flags lie in
memory that a filter cannot read, and libc then falls back on `clone`, whose flags are checked.
"""

from __future__ import annotations

import errno
import platform
import struct
from typing import NamedTuple


class _Arch(NamedTuple):
    audit: int
    column: int


_ARCHES = {"x86_64": _Arch(0xC000003E, 0), "aarch64": _Arch(0xC00000B7, 1)}

# name: (x86_64, aarch64); None where the architecture lacks the call.
_DENIED: dict[str, tuple[int | None, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "create_module": (174, None),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}
_UNSHARE, _CLONE, _CLONE3, _IOCTL, _SOCKET = (272, 97), (56, 220), (435, 435), (16, 29), (41, 198)

# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET; NEWTIME shares a bit with the exit signal of
# clone and counts for unshare only.
NEW_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
NEW_TIME = 0x00000080
TERMINAL_INJECTION = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
# UNIX, INET, INET6, NETLINK: the network namespace confines these. AF_VSOCK, for one, reaches the host past it.
FAMILIES = (1, 2, 10, 16)

_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCH_AT, _ARG0_AT, _ARG1_AT = 0, 4, 16, 24


def supported(machine: str | None = None) -> bool:
    """Whether a filter exists for this processor architecture."""
    return (machine or platform.machine()) in _ARCHES


def denied(machine: str | None = None) -> dict[str, int]:
    """Names and numbers of the calls refused whatever their arguments are."""
    column = _ARCHES[machine or platform.machine()].column
    return {name: number for name, row in _DENIED.items() if (number := row[column]) is not None}


def program(machine: str | None = None, *, spare: frozenset[str] = frozenset()) -> bytes:
    """The filter as `struct sock_filter[]`, 8 bytes an instruction, ready for `bwrap --seccomp`.

    `spare` are calls that it lets pass after all; with `unshare` among them, clone may make namespaces too.

    Raises:
        KeyError: no filter for this architecture (see `supported`).
    """
    machine = machine or platform.machine()
    arch = _ARCHES[machine]
    code = [_op(_LOAD, _ARCH_AT), _op(_EQUAL, arch.audit, 1, 0), _op(_RETURN, _KILL), _op(_LOAD, _NUMBER_AT)]
    if machine == "x86_64":
        code += _when(_AT_LEAST, 0x40000000, errno.ENOSYS)  # the x32 numbers would pass by the list
    for number in sorted(number for name, number in denied(machine).items() if name not in spare):
        code += _when(_EQUAL, number, errno.EPERM)
    code += _when(_EQUAL, _CLONE3[arch.column], errno.ENOSYS)
    if "unshare" not in spare:
        bits = [_op(_LOAD, _ARG0_AT), *_when(_ANY_BIT, NEW_NAMESPACES | NEW_TIME, errno.EPERM)]
        code += _block(_UNSHARE[arch.column], bits)
        bits = [_op(_LOAD, _ARG0_AT), *_when(_ANY_BIT, NEW_NAMESPACES, errno.EPERM)]
        code += _block(_CLONE[arch.column], bits)
    inject = [_op(_LOAD, _ARG1_AT)]
    for request in TERMINAL_INJECTION:
        inject += _when(_EQUAL, request, errno.EPERM)
    code += _block(_IOCTL[arch.column], inject)
    family = [_op(_LOAD, _ARG0_AT)]
    for index, number in enumerate(FAMILIES):
        family.append(_op(_EQUAL, number, len(FAMILIES) - index, 0))
    family.append(_op(_RETURN, _ERRNO | errno.EAFNOSUPPORT))
    code += _block(_SOCKET[arch.column], family)
    return b"".join([*code, _op(_RETURN, _ALLOW)])


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _when(test: int, value: int, error: int) -> list[bytes]:
    return [_op(test, value, 0, 1), _op(_RETURN, _ERRNO | error)]


def _block(number: int, body: list[bytes]) -> list[bytes]:
    """Run `body` for one call only; it falls through to an allowing return, so the number need not be reloaded."""
    body = [*body, _op(_RETURN, _ALLOW)]
    return [_op(_EQUAL, number, 0, len(body)), *body]
