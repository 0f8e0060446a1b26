"""Abuse cases 20 to 30: what a program must not see or reach."""

from __future__ import annotations

import contextlib
import io
import os
import socket
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sandbox import seccomp
from sandbox.archives import unpack
from sandbox.conformance.report import Unenforceable
from sandbox.conformance.subject import Subject, bash, demand, equal, python, refused, succeeds
from sandbox.errors import SandboxPathError

_CALL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(*numbers):
    result = libc.syscall(*numbers)
    return "refused" if result < 0 and ctypes.get_errno() in (1, 38) else f"{result} {ctypes.get_errno()}"
"""


@contextlib.contextmanager
def _host_file() -> Iterator[Path]:
    """A file of the harness's that anyone may read."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = Path(folder, "secret.txt")
        path.write_text("the host's own")
        path.chmod(0o644)
        yield path


def abuse_20_host_secrets(subject: Subject) -> None:
    """Files, environment and command lines of the host, and the variables given to init."""
    os.environ["HOST_SECRET"] = "in-environment"
    try:
        with _host_file() as path, subject.box(env={"TOKEN": "pass-phrase"}, max_output_bytes=1 << 20) as box:
            script = f"""
            cat {path} /etc/shadow /root/.ssh/* /home/*/.bashrc /proc/*/root{path} 2>/dev/null
            cat /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'
            tr '\\0' '\\n' < /proc/self/environ | grep -v TOKEN
            find {path.parent} /root -maxdepth 1 2>/dev/null
            """
            text = bash(box, script).stdout.text
            for secret in ("the host's", "in-environment", "HOST_SECRET", path.name, "root:", "pass-phrase"):
                demand(secret not in text.replace(script, ""), f"{secret!r} can be read")
            root = bash(box, "cat /etc/passwd | grep -v '^#' | wc -l; test -r /etc/shadow && echo shadow")
            demand("shadow" not in root.stdout.text, "/etc/shadow can be read")
    finally:
        del os.environ["HOST_SECRET"]


def abuse_21_files_of_other_sandboxes(subject: Subject) -> None:
    """A grader's and another episode's, on disk and through /proc."""
    word = f"gold-{os.getpid()}-patch"
    script = "find / -path /usr -prune -o -path /proc -prune -o -name 'gold.patch*' -print 2>/dev/null"
    script += "; cat /proc/[0-9]*/root/workspace/gold.patch /proc/[0-9]*/cwd/gold.patch 2>/dev/null"
    with (
        subject.box(files={"gold.patch": word.encode()}) as grader,
        subject.box() as box,
        contextlib.closing(grader.shell()) as shell,
    ):
        succeeds(shell.run("cat gold.patch > /tmp/gold.patch"), "the grader")
        equal(bash(box, script).stdout.text, "", "what can be found of it")


def abuse_22_links_swapped_while_copying(subject: Subject) -> None:
    """A folder that becomes a link to a folder of the host and back, all the while."""
    with tempfile.TemporaryDirectory() as outside, subject.box(files={"d/f": b"inside"}) as box:
        os.chmod(outside, 0o777)
        Path(outside, "f").write_text("outside")
        with contextlib.closing(box.shell()) as shell:
            loop = f"(while :; do mv d e; ln -s {outside} d; rm d; mv e d; done) >/dev/null 2>&1 &"
            shell.run(loop)
            for _ in range(1000 if subject.launch_s < 0.2 else 60):
                with contextlib.suppress(SandboxPathError):
                    box.write("d/new", b"x")
                with contextlib.suppress(SandboxPathError):
                    equal(box.read("d/f"), b"inside", "what the harness reads")
        equal(os.listdir(outside), ["f"], "what the harness wrote outside")


def abuse_22_hard_links_and_devices(subject: Subject) -> None:
    """A hard link within the workspace is a file; one to the system, or a device, cannot be made or read."""
    with subject.box() as box:
        script = "echo hi > f; ln f hard; ln /etc/passwd stolen; mknod null c 1 3; ls -A"
        equal(bash(box, script).stdout.text, "f\nhard\n", "files that could be made")
        equal(box.read("hard"), b"hi\n", "the hard link")
        for path in ("/dev/null", "/proc/self/environ", "../dev/zero"):
            with refused(SandboxPathError, f"reading {path}"):
                box.read(path)


def _archive(*members: tuple[str, bytes, str]) -> bytes:
    """A tar of empty members, each a name, a type and what it links to."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, kind, link in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, link
            archive.addfile(member)
    return buffer.getvalue()


def abuse_23_archives(subject: Subject) -> None:
    """An archive with absolute names, `..` and links changes nothing outside, whoever unpacks it."""
    link, hard, plain = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.REGTYPE
    absolute, dots = ("/tmp/absolute", plain, ""), ("../../escape", plain, "")
    out, through = ("out", link, "/tmp"), ("out/through", plain, "")
    evil = _archive(absolute, dots, out, through)
    before = set(os.listdir(tempfile.gettempdir()))
    with subject.box() as box:
        box.write("evil.tar", evil)
        bash(box, "tar -xPf evil.tar; python3 -c 'import tarfile; tarfile.open(\"evil.tar\").extractall()'")
        for path in ("out", "out/through"):
            with refused(SandboxPathError, f"reading {path}"):
                box.read(path)
        equal(unpack(box, _archive(absolute)), 1, "files with an absolute name")
        equal(box.read("tmp/absolute"), b"", "where it landed")
        device = ("null", tarfile.CHRTYPE, "")
        for members in ((dots,), (out, through), (through,), (("hard", hard, "/etc/passwd"),), (device,)):
            with refused(SandboxPathError, f"unpacking {members}"):
                unpack(box, _archive(*members))
    made = {"absolute", "escape", "through"} & (set(os.listdir(tempfile.gettempdir())) - before)
    equal(sorted(made), [], "files made on the host")


def abuse_24_kernel_settings(subject: Subject) -> None:
    """None can be written."""
    script = """
    for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sysrq-trigger /proc/sys/vm/drop_caches \
             /proc/self/uid_map /proc/irq/default_smp_affinity /sys/kernel/uevent_helper /sys/power/state; do
        (echo 1 > $f) 2>/dev/null && echo wrote $f
    done
    mkdir /sys/fs/cgroup/x 2>/dev/null && echo cgroup
    for f in $(find /sys/fs/cgroup -maxdepth 2 -name '*limit_in_bytes' -o -name 'memory.max' 2>/dev/null); do
        (echo 1 > $f) 2>/dev/null && echo wrote $f
    done
    :
    """
    with subject.box() as box:
        equal(bash(box, script).stdout.text, "", "settings written")


def abuse_25_namespaces_mounts_and_capabilities(subject: Subject) -> None:
    """No new namespace, no mount, no set-user-id program, no capability."""
    script = """
    for flag in -U -Ur -m -p -n -i -u -C; do unshare $flag true 2>/dev/null && echo unshare $flag; done
    mount -t tmpfs none /tmp 2>/dev/null && echo mount
    mount --bind /tmp /workspace 2>/dev/null && echo bind
    umount /tmp 2>/dev/null && echo umount
    chroot / true 2>/dev/null && echo chroot
    cp $(command -v id) id && chmod 6755 id && [ "$(./id -u)" = "$(id -u)" ] || echo setuid
    su -c id 2>/dev/null </dev/null && echo su
    mknod dev c 1 3 2>/dev/null && echo mknod
    chown 0 id 2>/dev/null && echo chown
    grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)' /proc/self/status | grep -v 0000000000000000
    """
    with subject.box() as box:
        equal(bash(box, script).stdout.text, "", "what worked")


def abuse_25_refused_system_calls(subject: Subject) -> None:
    """Those that serve escapes more than programs."""
    subject.needs("seccomp")
    names = ["io_uring_setup", "bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key", "mount", "setns"]
    names += ["kexec_load", "init_module", "open_by_handle_at", "move_mount", "fsopen", "pidfd_getfd"]
    with subject.box() as box:
        machine = bash(box, "uname -m").stdout.text.strip()
        if not seccomp.supported(machine):
            raise Unenforceable(f"no list of system calls for {machine}")
        numbers = seccomp.denied(machine)
        code = "\n".join(f"print({name!r}, call({numbers[name]}, 0, 0, 0, 0, 0, 0))" for name in names)
        shown = python(box, _CALL + code).stdout.text.splitlines()
        equal(shown, [f"{name} refused" for name in names], "system calls")
        clone = {"x86_64": (435, 272, 56), "aarch64": (435, 97, 220)}[machine]
        code = f"print(call({clone[0]}, 0, 0), call({clone[1]}, 1 << 28), call({clone[2]}, 1 << 28 | 17, 0, 0, 0, 0))"
        equal(python(box, _CALL + code).stdout.text, "refused refused refused\n", "clone3, unshare, clone")


def abuse_26_tracing_a_sibling(subject: Subject) -> None:
    """Neither by ptrace nor by process_vm_readv."""
    subject.needs("seccomp")
    with subject.box() as box:
        machine = bash(box, "uname -m").stdout.text.strip()
        numbers = seccomp.denied(machine)
        code = f"""
import subprocess
other = subprocess.Popen(['sleep', '60'])
print(call({numbers["ptrace"]}, 16, other.pid, 0, 0), call({numbers["process_vm_readv"]}, other.pid, 0, 0, 0, 0, 0))
"""
        equal(python(box, _CALL + code).stdout.text, "refused refused\n", "ptrace, process_vm_readv")


def abuse_27_terminal(subject: Subject) -> None:
    """No characters can be pushed into the controlling terminal: there is none."""
    code = """
import fcntl, os, pty
try: os.open("/dev/tty", os.O_RDWR)
except OSError: print("no terminal")
for fd in (0, 1, 2): print(os.isatty(fd))
"""
    with subject.box() as box:
        equal(python(box, code).stdout.text, "no terminal\nFalse\nFalse\nFalse\n", "terminal")


_REACH = """
import socket
def tries(name, do):
    try: do()
    except OSError: return
    print('reached', name)
def tcp(address, family=socket.AF_INET):
    s = socket.socket(family, socket.SOCK_STREAM); s.settimeout(0.3); s.connect(address)
tries('loopback of the host', lambda: tcp(('127.0.0.1', PORT)))
tries('gateways', lambda: [tcp((a, 22)) for a in ('172.17.0.1', '10.0.2.2', '192.168.0.1')])
tries('metadata', lambda: tcp(('169.254.169.254', 80)))
tries('internet', lambda: tcp(('1.1.1.1', 53)))
tries('IPv6', lambda: tcp(('2606:4700:4700::1111', 53), socket.AF_INET6))
tries('UDP', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('8.8.8.8', 53)))
tries('DNS', lambda: socket.getaddrinfo('example.com', 80))
tries('abstract socket', lambda: tcp('\\0NAME', socket.AF_UNIX))
for path in ('docker.sock', 'dbus/system_bus_socket', 'containerd/containerd.sock'):
    path = '/run/' + path
    tries(path, lambda: tcp(path, socket.AF_UNIX))
tries('raw packets', lambda: socket.socket(17, socket.SOCK_RAW))
print(sorted(line.split(':')[0].strip() for line in open('/proc/net/dev') if ':' in line))
"""


def abuse_28_network(subject: Subject) -> None:
    """TCP, UDP, DNS, IPv6, abstract sockets, daemons' sockets, the metadata address."""
    subject.needs("no_network")
    name = f"agent-rl-conformance-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{name}")
        abstract.listen()
        code = _REACH.replace("PORT", str(listener.getsockname()[1])).replace("NAME", name)
        with subject.box() as box:
            shown = python(box, code).stdout.text
            equal(shown.splitlines()[:-1], [], "reached")
            demand(shown.splitlines()[-1:] == ["['lo']"], f"network interfaces: {shown}")


def abuse_29_descriptors_of_the_harness(subject: Subject) -> None:
    """Even inheritable ones."""
    read, write = os.pipe()
    os.set_inheritable(read, True)
    os.set_inheritable(write, True)
    try:
        with subject.box() as box:
            text = python(box, "import os; print(sorted(os.listdir('/proc/self/fd')))").stdout.text
    finally:
        os.close(read)
        os.close(write)
    equal(text, "['0', '1', '2', '3']\n", "descriptors (3 is the listing's own)")


def abuse_30_two_sandboxes(subject: Subject) -> None:
    """Neither see nor signal each other, and share no place of the same name."""
    script = """
    cat /workspace/file /tmp/file /dev/shm/file 2>/dev/null
    cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -o '60[.]30'
    kill -9 -1
    ipcs -m 2>/dev/null | grep 0x
    :
    """
    with subject.box() as other, contextlib.closing(other.shell()) as shell:
        places = "echo mine > /workspace/file; echo mine > /tmp/file; echo mine > /dev/shm/file"
        succeeds(shell.run(f"{places}; sleep 60.30 &"), "the other sandbox")
        with subject.box() as box:
            equal(bash(box, script).stdout.text, "", "what can be seen of it")
        equal(
            shell.run("jobs -r | wc -l; cat /tmp/file").stdout.text, "1\nmine\n", "the other sandbox after it"
        )
