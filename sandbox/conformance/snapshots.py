"""Snapshots, forks and restoring."""

from __future__ import annotations

import contextlib

from sandbox.base import Sandbox
from sandbox.conformance.subject import Subject, bash, equal, refused, succeeds
from sandbox.errors import SandboxBusy, SandboxError, SandboxPathError

_FILES = {"keep": b"k", "d/one": b"1", "d/two": b"2"}
_LIST = "find . -type f -printf '%P %s\\n' | sort; find . -mindepth 1 -type d -printf '%P/\\n' | sort"
_WHOLE = "d/one 1\nd/two 1\nkeep 1\nd/\n"


def _listing(box: Sandbox) -> str:
    return succeeds(bash(box, _LIST), "listing").stdout.text


def fork_and_parent_are_independent(subject: Subject) -> None:
    """What one changes, makes or deletes, the other does not see."""
    with subject.box(files=_FILES) as box, box.fork() as child:
        succeeds(bash(child, "rm d/one; echo changed > keep; mkdir n; echo x > n/f"), "the child's changes")
        succeeds(bash(box, "rm -r d; echo parent > new"), "the parent's changes")
        equal(_listing(child), "d/two 1\nkeep 8\nn/f 2\nd/\nn/\n", "the child's files")
        equal(_listing(box), "keep 1\nnew 7\n", "the parent's files")
        equal(child.read("keep"), b"changed\n", "a file that the child changed")
        for place, path in ((child, "d/one"), (box, "d/two"), (box, "n/f")):
            with refused(SandboxPathError, f"reading {path}"):
                place.read(path)


def fork_outlives_its_parent(subject: Subject) -> None:
    """And forks on."""
    parent = subject.create(files=_FILES)
    child = parent.fork()
    parent.close()
    with child, child.fork() as grandchild:
        equal(_listing(grandchild), _WHOLE, "the grandchild's files")


def fork_of_a_fork(subject: Subject) -> None:
    """Three generations, each with its own changes."""
    with contextlib.ExitStack() as stack:
        box = stack.enter_context(subject.box())
        for generation in range(4):
            box.write(f"g{generation}", str(generation).encode())
            bash(box, f"rm -f g{generation - 2}")
            box = stack.enter_context(box.fork())
        equal(_listing(box), "g2 1\ng3 1\n", "the last one's files")


def many_forks_of_one(subject: Subject) -> None:
    """Six, alive at once."""
    with contextlib.ExitStack() as stack:
        box = stack.enter_context(subject.box(files=_FILES))
        forks = [stack.enter_context(box.fork()) for _ in range(6)]
        for number, fork in enumerate(forks):
            fork.write("keep", b"x" * (number + 2))
        sizes = [_listing(fork).splitlines()[2] for fork in forks]
        equal(sizes, [f"keep {number + 2}" for number in range(6)], "their files")
        equal(_listing(box), _WHOLE, "the parent's files")


def deletion_in_a_fork(subject: Subject) -> None:
    """Also of a folder that is made anew, by the program or by the harness."""
    with subject.box(files=_FILES) as box:
        with box.fork() as child:
            succeeds(bash(child, "rm -r d keep; mkdir keep; echo in > keep/inner"), "deleting")
            child.write("d/three", b"333")
            equal(_listing(child), "d/three 3\nkeep/inner 3\nd/\nkeep/\n", "the child's files")
            with child.fork() as grandchild:
                grandchild.write("d/four", b"4444")
                succeeds(bash(grandchild, "rm -r keep"), "deleting")
                equal(_listing(grandchild), "d/four 4\nd/three 3\nd/\n", "the grandchild's files")
        equal(_listing(box), _WHOLE, "the parent's files")


def folder_becomes_a_link(subject: Subject) -> None:
    """In a fork; the harness follows it no more than any other."""
    with subject.box(files=_FILES) as box, box.fork() as child:
        succeeds(bash(child, "rm -r d; ln -s /etc d; ln -sf /etc/passwd keep"), "linking")
        for path in ("keep", "d/one", "d/passwd"):
            with refused(SandboxPathError, f"reading {path}"):
                child.read(path)
        with refused(SandboxPathError, "writing d/one"):
            child.write("d/one", b"")


def restore(subject: Subject) -> None:
    """To any snapshot, any number of times, forwards and backwards."""
    with subject.box(files=_FILES) as box:
        first = box.snapshot()
        succeeds(bash(box, "rm -r d; echo changed > keep"), "changing")
        second = box.snapshot()
        box.write("late", b"x")
        for snapshot, files in ((first, _WHOLE), (second, "keep 8\n"), (second, "keep 8\n"), (first, _WHOLE)):
            box.restore(snapshot)
            equal(_listing(box), files, "files after restoring")
            box.write("later", b"x")
        first.release()
        second.release()


def restore_in_a_relative(subject: Subject) -> None:
    """A fork may take its parent's snapshot, and the parent its fork's."""
    with subject.box(files=_FILES) as box, box.fork() as child:
        before = box.snapshot()
        succeeds(bash(child, "rm -r d"), "changing")
        after = child.snapshot()
        child.restore(before)
        box.restore(after)
        equal((_listing(child), _listing(box)), (_WHOLE, "keep 1\n"), "files")
        before.release()
        after.release()


def snapshot_outlives_its_sandbox(subject: Subject) -> None:
    """As long as a relative lives."""
    with subject.box(files=_FILES) as box:
        child = box.fork()
        succeeds(bash(child, "rm -r d"), "changing")
        snapshot = child.snapshot()
        child.close()
        box.restore(snapshot)
        equal(_listing(box), "keep 1\n", "files")
        snapshot.release()
        equal(_listing(box), "keep 1\n", "files after the release")


def released_snapshot_is_refused(subject: Subject) -> None:
    """A second release is allowed, restoring is not."""
    with subject.box() as box:
        snapshot = box.snapshot()
        snapshot.release()
        snapshot.release()
        with refused(SandboxError, "restoring", saying="released"):
            box.restore(snapshot)


def foreign_snapshot_is_refused(subject: Subject) -> None:
    """Of a sandbox that is no relative, or no snapshot at all."""
    with subject.box(files=_FILES) as box, subject.box() as stranger:
        snapshot = stranger.snapshot()
        for odd in (snapshot, "snapshot"):
            with refused(SandboxError, "restoring", saying="relative"):
                box.restore(odd)  # type: ignore[arg-type]
        snapshot.release()
        equal(_listing(box), _WHOLE, "files afterwards")


def snapshot_is_refused_while_a_shell_is_open(subject: Subject) -> None:
    """And so are fork and restore, until it is closed."""
    with subject.box(files=_FILES) as box:
        snapshot = box.snapshot()
        with contextlib.closing(box.shell()) as shell:
            equal(shell.run("cat d/one").stdout.text, "1", "a file in the shell")
            for name, use in (("snapshot", box.snapshot), ("fork", box.fork)):
                with refused(SandboxBusy, name):
                    use()
            with refused(SandboxBusy, "restore"):
                box.restore(snapshot)
        box.restore(snapshot)
        snapshot.release()


def deep_chain_stays_right(subject: Subject) -> None:
    """Twenty snapshots with writes and deletions between them, against a dictionary."""
    expected = dict(_FILES)
    with subject.box(files=_FILES) as box, contextlib.ExitStack() as stack:
        for depth in range(20):
            stack.callback(box.snapshot().release)
            name, data = f"d/f{depth % 7}", str(depth).encode()
            if depth % 5 == 4 and name in expected:
                succeeds(box.exec(["rm", name]), "rm")
                del expected[name]
            else:
                box.write(name, data)
                expected[name] = data
        equal({name: box.read(name) for name in expected}, expected, "files")
        lines = [f"{name} {len(data)}" for name, data in sorted(expected.items())]
        equal(_listing(box).splitlines(), [*lines, "d/"], "listing")


def modes_and_links_survive(subject: Subject) -> None:
    """Permissions, times, symbolic and hard links, in a fork of a fork and in a shell."""
    script = "chmod 751 d; chmod 640 keep; touch -d @1000 d/two; ln -s nowhere link; ln keep hard"
    show = "find . -mindepth 1 ! -name d -printf '%P %y %m %s %l\\n' | sort; find d/two -printf '%Ts\\n'; cat hard"
    with subject.box(files=_FILES) as box:
        succeeds(bash(box, script), "making them")
        before = bash(box, show).stdout.text
        with box.fork() as child, child.fork() as grandchild:
            equal(bash(grandchild, show).stdout.text, before, "in a fork of a fork")
            with contextlib.closing(grandchild.shell()) as shell:
                equal(shell.run(show).stdout.text, before, "in a shell")
