"""Files between the harness and a sandbox."""

from __future__ import annotations

from sandbox.conformance.subject import LIMITS, Subject, bash, demand, equal, refused, succeeds
from sandbox.errors import SandboxPathError


def up_and_down(subject: Subject) -> None:
    """Written, changed by a program, read."""
    with subject.box() as box:
        box.write("a.txt", b"one\n")
        succeeds(bash(box, "echo two >> a.txt; cp a.txt b.txt"), "cp")
        equal(box.read("b.txt"), b"one\ntwo\n", "file")


def binary_files(subject: Subject) -> None:
    """All byte values, and an empty one."""
    data = bytes(range(256)) * 100
    with subject.box(files={"spec.bin": data, "empty": b""}) as box:
        box.write("bin", data)
        succeeds(bash(box, "cmp bin spec.bin && cat bin > copy && test ! -s empty"), "cmp")
        equal(box.read("copy") == data, True, "the file comes back whole")
        equal(box.read("empty"), b"", "empty file")


def large_files(subject: Subject) -> None:
    """Three megabytes each way."""
    data = bytes(range(250)) * 12_000
    with subject.box() as box:
        box.write("large", data)
        equal(box.read("large", max_bytes=4 << 20) == data, True, "the file comes back whole")


def parent_folders_are_made(subject: Subject) -> None:
    """And belong to the program."""
    with subject.box() as box:
        box.write("x/y/z/f", b"1")
        succeeds(bash(box, "test -f x/y/z/f && touch x/y/new && rm -r x"), "using the folders")


def same_file_by_every_path(subject: Subject) -> None:
    """Relative, absolute beneath the workspace, with dots and double slashes."""
    with subject.box(files={"d/f": b"1"}) as box:
        for path in ("d/f", "./d/f", "/workspace/d/f", "d//./f"):
            equal(box.read(path), b"1", path)


def overwriting_keeps_the_mode(subject: Subject) -> None:
    """And a program that has the old file open keeps it: the new one takes its place in one step."""
    with subject.box() as box:
        succeeds(bash(box, "echo '#!/bin/bash' > run.sh; chmod 700 run.sh; ln run.sh other"), "chmod")
        box.write("run.sh", b"#!/bin/bash\necho new\n")
        equal(box.exec(["./run.sh"]).stdout.text, "new\n", "output")
        equal(box.read("other"), b"#!/bin/bash\n", "the other name of the old file")
        equal(bash(box, "ls -A").stdout.text, "other\nrun.sh\n", "files")


def permissions_bind_programs(subject: Subject) -> None:
    """A file without permissions cannot be read inside; root is nobody there."""
    with subject.box() as box:
        result = bash(box, "echo x > f; chmod 000 f; cat f")
        equal((result.exit_code, result.stdout.text), (1, ""), "cat")
        demand("Permission denied" in result.stderr.text, f"cat says {result.stderr.text!r}")


def read_is_capped(subject: Subject) -> None:
    """At `max_bytes`, exactly."""
    with subject.box(files={"f": b"x" * 100}) as box:
        equal(box.read("f", max_bytes=100), b"x" * 100, "file of the size of the cap")
        with refused(SandboxPathError, "a file larger than the cap", saying="99"):
            box.read("f", max_bytes=99)


def absent_files_are_refused(subject: Subject) -> None:
    """And folders, with the path in the message."""
    with subject.box(files={"d/f": b""}) as box:
        for path in ("absent", "d", "d/absent", "d/f/x", ".", ""):
            with refused(SandboxPathError, f"reading {path!r}"):
                box.read(path)


def paths_outside_are_refused(subject: Subject) -> None:
    """To read and to write."""
    with subject.box() as box:
        for path in ("..", "../x", "/etc/passwd", "a/../../x", "/workspacex/f", "a\0b", "\ud800"):
            with refused(SandboxPathError, f"reading {path!r}"):
                box.read(path)
            with refused(SandboxPathError, f"writing {path!r}"):
                box.write(path, b"x")


def links_and_special_files_are_refused(subject: Subject) -> None:
    """Symbolic links anywhere in a path, named pipes, sockets, folders."""
    script = "mkdir d; ln -s d soft; ln -s d/f file; ln -s absent dangling; mkfifo pipe; echo 1 > d/f"
    with subject.box() as box:
        succeeds(bash(box, script), "making them")
        for path in ("soft/f", "file", "dangling", "pipe", "d"):
            with refused(SandboxPathError, f"reading {path!r}"):
                box.read(path)
            with refused(SandboxPathError, f"writing {path!r}"):
                box.write(path, b"x")
        equal(box.read("d/f"), b"1\n", "the file that the links mean")


def odd_names(subject: Subject) -> None:
    """Spaces, quotes, line ends, dashes, other scripts."""
    with subject.box() as box:
        for name in ("ä ' \n\t$(x)", "-rf", "*", '"', "\\", "日本/語", " "):
            box.write(name, name.encode())
            equal(box.read(name), name.encode(), f"file {name!r}")
        found = bash(box, "find . -type f | wc -l; cat ./-rf").stdout.text
        equal(found.split(), ["8", "-rf"], "what a program sees")  # one name has a line end in it


def unusable_names_are_refused(subject: Subject) -> None:
    """Longer or deeper than a file system or this interface takes."""
    with subject.box() as box:
        for path in ("n" * 300, "d/" * 101 + "f"):
            with refused(SandboxPathError, f"writing {path[:20]!r}..."):
                box.write(path, b"")


def many_files(subject: Subject) -> None:
    """Two hundred written, six hundred made by a program."""
    with subject.box(files={f"d{n % 7}/f{n}": b"x" for n in range(200)}) as box:
        equal(bash(box, "find . -type f | wc -l").stdout.text.strip(), "200", "written files")
        succeeds(bash(box, "for i in $(seq 600); do echo $i > m$i; done"), "making files")
        equal([box.read(f"m{n}") for n in (1, 300, 600)], [b"1\n", b"300\n", b"600\n"], "files")


def full_workspace_is_a_clear_error(subject: Subject) -> None:
    """For the harness that writes; nothing half-written stays."""
    subject.needs("workspace_size")
    with subject.box() as box:
        with refused(SandboxPathError, "writing more than fits", saying="full"):
            box.write("f", bytes(LIMITS.workspace_bytes + (1 << 20)))
        equal(bash(box, "ls -A").stdout.text, "", "files")
