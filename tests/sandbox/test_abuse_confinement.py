"""Cases 20 to 30 of the abuse checklist: what a program must not see or reach."""

from __future__ import annotations

import os
import socket
from contextlib import closing
from pathlib import Path

import pytest

import sandbox
from sandbox import Sandbox, SandboxPathError, SandboxSpec, seccomp
from tests.sandbox.conftest import SMALL, python

CALL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(*numbers):
    result = libc.syscall(*numbers)
    return (result, os.strerror(ctypes.get_errno()) if result < 0 else "ok")
"""
NUMBERS = {"x86_64": 0, "aarch64": 1}[os.uname().machine]


def test_abuse_20_host_secrets(box: Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the host's")
    secret.chmod(0o644)
    os.environ["HOST_SECRET"] = "in-environment"
    try:
        script = f"""
        cat {secret} /etc/shadow /root/.ssh/* /home/*/.bashrc /proc/*/root{secret} 2>/dev/null
        cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'
        ls /root /home /sys /run /var {tmp_path.parent} 2>/dev/null
        """
        text = box.exec(["/bin/bash", "-c", script]).stdout.text
    finally:
        del os.environ["HOST_SECRET"]
    assert "the host's" not in text
    assert "in-environment" not in text
    assert "HOST_SECRET" not in text
    listed = box.exec(["/bin/ls", "/"]).stdout.text.split()
    assert set(listed) <= {
        "bin",
        "dev",
        "etc",
        "lib",
        "lib32",
        "lib64",
        "libx32",
        "proc",
        "sbin",
        "tmp",
        "usr",
        "workspace",
    }
    assert set(box.exec(["/bin/ls", "/etc"]).stdout.text.split()) <= {
        "alternatives",
        "group",
        "hosts",
        "ld.so.cache",
        "mime.types",
        "nsswitch.conf",
        "passwd",
    }


def test_abuse_20_command_line_of_init_shows_no_host_path_and_no_variable() -> None:
    spec = SandboxSpec(limits=SMALL, env={"TOKEN": "pass-phrase"})
    with sandbox.create(spec) as box:
        text = box.exec(["/bin/cat", "/proc/1/cmdline"]).stdout.text
        environ = box.exec(["/bin/cat", "/proc/1/environ"])
    words = text.rstrip("\0").split("\0")
    assert words[:2] == ["./bwrap", "--args"]
    assert words[3:] == ["--", "/bin/cat", "/proc/1/cmdline"]
    assert "pass-phrase" not in environ.stdout.text


def test_abuse_22_links_and_pipes_are_not_followed_by_the_host(box: Sandbox) -> None:
    script = "ln -s /etc/passwd link; ln -s / root; ln -s . here; ln -s f soft"
    script += "; mkfifo pipe; mkdir d; echo hi > f; ln f hard"
    assert box.exec(["/bin/bash", "-c", script]).ok
    for path in ("link", "root/etc/passwd", "here/f", "pipe", "d", "soft", ".", "/dev/null", "f/x", "absent"):
        with pytest.raises(SandboxPathError):
            box.read(path)
    for path in (
        "link",
        "root/x",
        "here/x",
        "pipe",
        "d",
        "soft",
        "../x",
        "/etc/x",
        "a/../../x",
        "f/x",
        "",
        "a\0b",
    ):
        with pytest.raises(SandboxPathError):
            box.write(path, b"x")
    assert box.read("hard") == b"hi\n"


def test_abuse_22_swapping_a_folder_for_a_link_while_the_host_writes(box: Sandbox) -> None:
    box.write("d/f", b"")
    outside = Path("/tmp/swap-must-not-appear")
    with closing(box.shell()) as shell:
        shell.run("(while :; do mv d e; ln -s /tmp d; rm d; mv e d; done) 2>/dev/null &")
        for _ in range(3000):
            try:
                box.write("d/swap-must-not-appear", b"x")
                box.read("d/f")
            except SandboxPathError:
                continue
    assert not outside.exists()


def test_abuse_24_kernel_settings(box: Sandbox) -> None:
    script = """
    for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sysrq-trigger /proc/sys/vm/drop_caches \
             /proc/self/uid_map /proc/irq/default_smp_affinity; do
        (echo 1 > $f) 2>/dev/null && echo wrote $f
    done
    ls -d /sys/* /sys/fs/cgroup/* 2>/dev/null
    mkdir /sys/fs/cgroup/x 2>/dev/null && echo cgroup
    """
    assert box.exec(["/bin/bash", "-c", script]).stdout.text == ""


def test_abuse_25_namespaces_mounts_setuid_and_capabilities(box: Sandbox) -> None:
    script = """
    for flag in -U -Ur -m -p -n -i -u -C; do unshare $flag true 2>/dev/null && echo unshare $flag; done
    mount -t tmpfs none /tmp 2>/dev/null && echo mount
    mount --bind /tmp /workspace 2>/dev/null && echo bind
    umount /tmp 2>/dev/null && echo umount
    chroot / true 2>/dev/null && echo chroot
    cp /bin/id id && chmod 6755 id && ./id -u
    su -c id 2>/dev/null && echo su
    mknod dev c 1 3 2>/dev/null && echo mknod
    chown 0 id 2>/dev/null && echo chown
    grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)' /proc/self/status | grep -v 0000000000000000
    """
    assert box.exec(["/bin/bash", "-c", script]).stdout.text == "1000\n"


def test_abuse_25_refused_system_calls(box: Sandbox) -> None:
    numbers = seccomp.denied()
    names = [
        "io_uring_setup",
        "bpf",
        "perf_event_open",
        "userfaultfd",
        "keyctl",
        "add_key",
        "mount",
        "setns",
        "kexec_load",
    ]
    names += [
        "init_module",
        "open_by_handle_at",
        "ptrace",
        "process_vm_readv",
        "move_mount",
        "fsopen",
        "pidfd_getfd",
    ]
    lines = [f"print({name!r}, call({numbers[name]}, 0, 0, 0, 0, 0, 0))" for name in names]
    text = python(box, CALL + "\n".join(lines)).stdout.text
    assert text.splitlines() == [f"{name} (-1, 'Operation not permitted')" for name in names]
    clone3, unshare, clone = ((435, 435)[NUMBERS], (272, 97)[NUMBERS], (56, 220)[NUMBERS])
    code = f"print(call({clone3}, 0, 0), call({unshare}, 0x10000000), call({clone}, 0x10000000 | 17, 0, 0, 0, 0))"
    refused = "(-1, 'Operation not permitted')"
    assert python(box, CALL + code).stdout.text == f"(-1, 'Function not implemented') {refused} {refused}\n"


def test_abuse_26_tracing_a_sibling(box: Sandbox) -> None:
    code = (
        CALL
        + f"""
import subprocess
other = subprocess.Popen(['/bin/sleep', '60'])
print(call({(101, 117)[NUMBERS]}, 16, other.pid, 0, 0), call({(310, 270)[NUMBERS]}, other.pid, 0, 0, 0, 0, 0))
try: open(f'/proc/{{other.pid}}/mem', 'rb').read(1)
except OSError as error: print('mem', error.errno)
"""
    )
    lines = python(box, code).stdout.text.splitlines()
    assert lines[0] == "(-1, 'Operation not permitted') (-1, 'Operation not permitted')"
    assert lines[1:] == ["mem 5"]  # opened by its own user, but address 0 is not mapped


def test_abuse_27_pushing_characters_into_the_terminal(box: Sandbox) -> None:
    code = """
import fcntl, os, pty
_, terminal = pty.openpty()
for attempt in (lambda: fcntl.ioctl(terminal, 0x5412, b"x"), lambda: os.open("/dev/tty", os.O_RDWR)):
    try: attempt()
    except OSError as error: print(error.errno)
"""
    assert python(box, code).stdout.text == "1\n6\n"


def test_abuse_28_network(box: Sandbox) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("\0agent-rl-test")
    abstract.listen()
    code = f"""
import socket
def tries(name, do):
    try: do()
    except OSError: return
    print('reached', name)
def tcp(address, family=socket.AF_INET):
    s = socket.socket(family, socket.SOCK_STREAM); s.settimeout(0.3); s.connect(address)
tries('loopback of the host', lambda: tcp(('127.0.0.1', {listener.getsockname()[1]})))
tries('metadata', lambda: tcp(('169.254.169.254', 80)))
tries('internet', lambda: tcp(('1.1.1.1', 53)))
tries('IPv6', lambda: tcp(('2606:4700:4700::1111', 53), socket.AF_INET6))
tries('UDP', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('8.8.8.8', 53)))
tries('DNS', lambda: socket.getaddrinfo('example.com', 80))
tries('abstract socket', lambda: tcp('\\0agent-rl-test', socket.AF_UNIX))
tries('docker', lambda: tcp('/var/run/docker.sock', socket.AF_UNIX))
tries('hypervisor', lambda: socket.socket(40, socket.SOCK_STREAM))
tries('packets', lambda: socket.socket(17, socket.SOCK_RAW))
tries('crypto', lambda: socket.socket(38, socket.SOCK_SEQPACKET))
print(sorted(line.split(':')[0].strip() for line in open('/proc/net/dev') if ':' in line))
"""
    try:
        assert python(box, code).stdout.text == "['lo']\n"
    finally:
        listener.close()
        abstract.close()


def test_abuse_29_descriptors_of_the_harness(box: Sandbox) -> None:
    read, write = os.pipe()
    os.set_inheritable(read, True)
    os.set_inheritable(write, True)
    try:
        text = python(box, "import os; print(sorted(os.listdir('/proc/self/fd')))").stdout.text
    finally:
        os.close(read)
        os.close(write)
    assert text == "['0', '1', '2', '3']\n"  # 3 is the listing's own


def test_abuse_30_two_sandboxes_neither_see_nor_signal_each_other(box: Sandbox) -> None:
    with sandbox.create(SandboxSpec(limits=SMALL)) as other, closing(other.shell()) as shell:
        assert shell.run(
            "echo mine > /workspace/file; echo mine > /tmp/file; echo mine > /dev/shm/file; sleep 60.30 &"
        ).ok
        script = """
        cat /workspace/file /tmp/file /dev/shm/file 2>/dev/null
        grep -l '60[.]30' /proc/*/cmdline 2>/dev/null
        kill -9 -1
        ipcs -m | grep -c 0x
        :
        """
        assert box.exec(["/bin/bash", "-c", script]).stdout.text in ("0\n", "")
        assert shell.run("jobs -r | wc -l; cat /tmp/file").stdout.text == "1\nmine\n"
        assert (
            other.posture()["uid"] != box.posture()["uid"] or "separate_uid" not in box.capabilities.enforced
        )
