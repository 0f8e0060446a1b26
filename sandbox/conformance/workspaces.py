"""What `read` and `write`, snapshots, restores and forks promise."""

from __future__ import annotations

import contextlib
import os
from functools import partial

from sandbox.base import Sandbox
from sandbox.conformance.subject import SMALL, Subject, bash, equal, python, raises
from sandbox.errors import SandboxBusy, SandboxError, SandboxPathError

_LIST = "find . -type f -printf '%P %s\n' | sort; find . -mindepth 1 -type d -printf '%P/\n' | sort"
_FILES = {"keep": b"k", "d/one": b"1", "d/two": b"2"}


def _listing(box: Sandbox) -> str:
    return bash(box, _LIST).stdout.text


def files_up_and_down(subject: Subject) -> None:
    """Bytes go in, a program copies them, bytes come out."""
    data = bytes(range(256)) * 40
    with subject.box() as box:
        box.write("a/b/in.bin", data)
        equal(box.exec(["/bin/cp", "a/b/in.bin", "/workspace/out.bin"]).exit_code, 0, "cp")
        equal(box.read("out.bin"), data, "bytes")
        equal(box.read("/workspace/a/./b//in.bin"), data, "bytes by another spelling of the path")


def files_of_the_spec(subject: Subject) -> None:
    """Are there at the start and belong to the program, whatever the harness's umask is."""
    before = os.umask(0o077)
    try:
        with subject.create(files={"d/f": b"1"}) as box:
            result = bash(box, "stat -c '%a %U' d d/f; echo 2 >> d/f; rm d/f; rmdir d")
    finally:
        os.umask(before)
    equal((result.stdout.text, result.exit_code), ("755 agent\n644 agent\n", 0), "modes and owner")


def files_of_the_spec_outside(subject: Subject) -> None:
    """A path of the spec that leaves the workspace is refused."""
    raises(SandboxPathError, "a file ../escape", lambda: subject.create(files={"../escape": b""}))


def write_keeps_the_mode(subject: Subject) -> None:
    """And replaces in one step: another name of the old file keeps the old content."""
    with subject.box() as box:
        bash(box, "echo old > run.sh; chmod 700 run.sh; ln run.sh other")
        box.write("run.sh", b"#!/bin/bash\necho new\n")
        equal(box.exec(["./run.sh"]).stdout.text, "new\n", "the program")
        equal(box.read("other"), b"old\n", "the other name")


def write_is_seen_at_once(subject: Subject) -> None:
    """Each program sees what was written before it."""
    with subject.box() as box:
        for number in range(5):
            box.write("n", str(number).encode())
            equal(box.exec(["/bin/cat", "n"]).stdout.text, str(number), "the file")


def write_into_a_full_workspace(subject: Subject) -> None:
    """Is a clear error, and leaves nothing."""
    subject.needs("workspace_size")
    with subject.box() as box:
        raises(SandboxPathError, "5 MiB in a workspace of 4", lambda: box.write("f", bytes(5 << 20)))
        equal(bash(box, "ls -A").stdout.text, "", "the workspace")


def read_is_capped(subject: Subject) -> None:
    """At `max_bytes`, exactly."""
    with subject.box() as box:
        box.write("f", b"x" * 100)
        equal(box.read("f", max_bytes=100), b"x" * 100, "the file")
        raises(SandboxPathError, "reading 100 bytes with a cap of 99", lambda: box.read("f", max_bytes=99))


def read_absent(subject: Subject) -> None:
    """Is a path error."""
    with subject.box() as box:
        raises(SandboxPathError, "an absent file", lambda: box.read("absent"))


def names_of_any_kind(subject: Subject) -> None:
    """Spaces, quotes, line breaks and other scripts are only names; what no file system takes is refused."""
    name = "ä ' \n\t$(x)"
    with subject.box() as box:
        box.write(name, b"odd")
        equal(box.read(name), b"odd", "the file")
        equal(
            python(box, "import os; print(ascii(os.listdir()))").stdout.text,
            f"[{name!a}]\n",
            "the listing",
        )
        raises(SandboxPathError, "a name of 300 characters", lambda: box.write("n" * 300, b""))


def permissions_hold(subject: Subject) -> None:
    """A program may lock a file against itself; the host still reads and replaces it."""
    with subject.box() as box:
        bash(box, "echo x > f; chmod 000 f")
        equal(bash(box, "cat f 2>/dev/null; echo $?").stdout.text, "1\n", "reading a locked file")
        box.write("f", b"y")
        equal(bash(box, "chmod 600 f; cat f").stdout.text, "y", "the file, unlocked")


def many_files(subject: Subject) -> None:
    """A few hundred of them, from both sides."""
    with subject.box() as box:
        for number in range(50):
            box.write(f"h/{number}", b"h")
        python(box, "import os\nos.mkdir('p')\nfor i in range(300): open(f'p/{i}', 'w').close()")
        equal(bash(box, "ls h | wc -l; ls p | wc -l").stdout.text, "50\n300\n", "counts")


def fork_is_independent(subject: Subject) -> None:
    """Neither side sees what the other writes or deletes."""
    with subject.create(files=_FILES) as base, base.fork() as child:
        bash(child, "rm d/one; echo changed > keep; mkdir n; echo x > n/f")
        bash(base, "rm -r d; echo parent > new")
        equal(_listing(child), "d/two 1\nkeep 8\nn/f 2\nd/\nn/\n", "the fork")
        equal(_listing(base), "keep 1\nnew 7\n", "the parent")
        equal(child.read("keep"), b"changed\n", "a file of the fork")
        raises(SandboxPathError, "a file that the fork deleted", lambda: child.read("d/one"))
        raises(SandboxPathError, "a file that the parent deleted", lambda: base.read("d/two"))


def fork_of_a_fork_outlives_its_parents(subject: Subject) -> None:
    """Closing an ancestor changes nothing."""
    parent = subject.create(files={"f": b"parent's"})
    child = parent.fork()
    parent.close()
    grandchild = child.fork()
    child.close()
    with grandchild:
        equal(grandchild.exec(["/bin/cat", "f"]).stdout.text, "parent's", "the file")


def fork_has_the_limits_and_environment(subject: Subject) -> None:
    """Of its parent."""
    with subject.create(env={"A": "1"}) as base, base.fork() as child:
        equal(bash(child, "echo $A; ulimit -n").stdout.text, f"1\n{SMALL.open_files}\n", "variable and limit")


def host_writes_over_what_a_fork_deleted(subject: Subject) -> None:
    """A folder that was deleted and made again does not show its old files."""
    with subject.create(files=_FILES) as base, base.fork() as child:
        bash(child, "rm -r d")
        child.write("d/three", b"333")
        equal(_listing(child), "d/three 3\nkeep 1\nd/\n", "the fork")
        bash(child, "rm keep; mkdir keep; echo in > keep/inner")
        equal(child.read("keep/inner"), b"in\n", "a file in a folder that was a file")
        with child.fork() as grandchild:
            grandchild.write("d/four", b"4444")
            equal(_listing(grandchild), "d/four 4\nd/three 3\nkeep/inner 3\nd/\nkeep/\n", "its fork")
        equal(_listing(base), "d/one 1\nd/two 1\nkeep 1\nd/\n", "the parent")


def snapshot_restores(subject: Subject) -> None:
    """Exactly, as often as asked, in relatives too."""
    with subject.create(files=_FILES) as base:
        first = base.snapshot()
        bash(base, "rm -r d; echo changed > keep")
        second = base.snapshot()
        base.restore(first)
        equal(_listing(base), "d/one 1\nd/two 1\nkeep 1\nd/\n", "the first snapshot")
        with base.fork() as relative:
            relative.restore(second)
            equal(_listing(relative), "keep 8\n", "the second snapshot, in a relative")
        base.write("more", b"")
        base.restore(first)
        base.restore(second)
        equal(_listing(base), "keep 8\n", "the second snapshot")
        for snapshot in (first, second, first):
            snapshot.release()
        raises(SandboxError, "a released snapshot", lambda: base.restore(first))


def snapshot_of_a_stranger(subject: Subject) -> None:
    """Is refused."""
    with subject.create() as base, subject.create() as stranger:
        snapshot = stranger.snapshot()
        raises(SandboxError, "the snapshot of a stranger", lambda: base.restore(snapshot))
        snapshot.release()


def snapshot_while_a_shell_is_open(subject: Subject) -> None:
    """Is refused, and so are fork and restore."""
    with subject.create(files=_FILES) as base:
        snapshot = base.snapshot()
        with contextlib.closing(base.shell()) as shell:
            equal(shell.run("cat d/one").stdout.text, "1", "a file in the shell")
            raises(SandboxBusy, "snapshot", base.snapshot)
            raises(SandboxBusy, "fork", base.fork)
            raises(SandboxBusy, "restore", partial(base.restore, snapshot))
        base.restore(snapshot)
        snapshot.release()


def forks_30_deep(subject: Subject) -> None:
    """A chain of forks stays right, whatever was written and deleted on the way."""
    expected = dict(_FILES)
    with contextlib.ExitStack() as stack:
        box = stack.enter_context(subject.create(files=_FILES))
        for depth in range(30):
            box = stack.enter_context(box.fork())
            name, data = f"d/f{depth % 7}", str(depth).encode()
            if depth % 3 == 2:
                if expected.pop(name, None) is not None:
                    box.exec(["/bin/rm", name])
            else:
                box.write(name, data)
                expected[name] = data
        equal({name: box.read(name) for name in expected}, expected, "the files")
        lines = [f"{name} {len(data)}" for name, data in sorted(expected.items())]
        equal(_listing(box).splitlines(), [*lines, "d/"], "the listing")


CASES = (
    files_up_and_down,
    files_of_the_spec,
    files_of_the_spec_outside,
    write_keeps_the_mode,
    write_is_seen_at_once,
    write_into_a_full_workspace,
    read_is_capped,
    read_absent,
    names_of_any_kind,
    permissions_hold,
    many_files,
    fork_is_independent,
    fork_of_a_fork_outlives_its_parents,
    fork_has_the_limits_and_environment,
    host_writes_over_what_a_fork_deleted,
    snapshot_restores,
    snapshot_of_a_stranger,
    snapshot_while_a_shell_is_open,
    forks_30_deep,
)
