"""Making, closing and describing sandboxes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import sandbox
from sandbox.base import Sandbox
from sandbox.conformance.subject import Subject, bash, demand, equal, refused, succeeds
from sandbox.errors import SandboxClosed, SandboxPathError, SandboxUnavailable
from sandbox.types import ExecResult


def capabilities_are_enforced_or_explained(subject: Subject) -> None:
    """None both ways, none without a reason, and a sandbox says the same."""
    report = subject.report
    equal(sorted(report.enforced & report.missing.keys()), [], "both enforced and missing")
    demand(bool(report.enforced), "nothing is enforced")
    equal([name for name, why in report.missing.items() if not why], [], "missing without a reason")
    with subject.box() as box:
        equal(box.capabilities, report, "capabilities of a sandbox")
        demand(isinstance(box, Sandbox), f"{type(box).__name__} lacks methods of Sandbox")


def what_is_enforced_may_be_required(subject: Subject) -> None:
    """All of it at once."""
    with subject.box(require=subject.report.enforced):
        pass


def what_is_missing_is_refused(subject: Subject) -> None:
    """With its name."""
    for name in subject.report.missing:
        with refused(SandboxUnavailable, f"require {name}", saying=name):
            subject.create(require=frozenset({name})).close()


def unknown_requirement_is_refused(subject: Subject) -> None:
    """With the name that was meant."""
    with refused(SandboxUnavailable, "require no_networks", saying="did you mean 'no_network'"):
        subject.create(require=frozenset({"no_networks"})).close()


def limits_are_validated(subject: Subject) -> None:
    """Nothing may be zero, which a kernel takes for unlimited."""
    names = ("memory_bytes", "processes", "open_files", "file_bytes", "workspace_bytes", "tmp_bytes")
    for name in (*names, "timeout_s", "max_output_bytes", "kill_output_bytes", "idle_timeout_s"):
        for value in (0, -1):
            with refused(ValueError, f"{name}={value}", saying=name):
                subject.create(**{name: value}).close()


def unknown_base_is_refused(subject: Subject) -> None:
    """Rather than another root file system shown."""
    spec = sandbox.SandboxSpec(base="absent.invalid/no-such-base:0")
    with refused(SandboxUnavailable, "an unknown base", saying="no-such-base"):
        sandbox.create(spec, subject.backend).close()


def initial_files_belong_to_the_program(subject: Subject) -> None:
    """They can be changed and removed, their folders too."""
    with subject.box(files={"d/e/f": b"1"}) as box:
        result = bash(
            box,
            "find d d/e/f -maxdepth 0 -printf '%m %u\\n' | sed s/$(id -un)/me/; "
            "echo 2 >> d/e/f; cat d/e/f; rm -r d; ls -A",
        )
        equal(result.stdout.text, "755 me\n644 me\n12\n", "files")


def initial_files_outside_are_refused(subject: Subject) -> None:
    """And nothing is left running."""
    for path in ("../x", "/etc/x", "a/../../x", ""):
        with refused(SandboxPathError, f"file {path!r}"):
            subject.create(files={path: b""}).close()


def close_twice(subject: Subject) -> None:
    """Is allowed, with shells and forks open."""
    box = subject.create()
    child, shell = box.fork(), box.shell()
    for thing in (box, box, shell, child, child):
        thing.close()


def close_from_another_thread(subject: Subject) -> None:
    """Ends the running program with reason `killed`."""
    box = subject.create()
    results: list[ExecResult] = []
    thread = threading.Thread(target=lambda: results.append(bash(box, "echo up; sleep 60")))
    thread.start()
    time.sleep(0.3 + 2 * subject.launch_s)
    box.close()
    thread.join(30)
    equal([(result.exit_code, result.reason) for result in results], [(None, "killed")], "results")


def use_after_close_is_refused(subject: Subject) -> None:
    """Every method, and a shell that was open."""
    box = subject.create()
    snapshot, shell = box.snapshot(), box.shell()
    box.close()
    uses: list[tuple[str, Callable[[], object]]] = [
        ("exec", lambda: box.exec(["true"])),
        ("read", lambda: box.read("f")),
        ("write", lambda: box.write("f", b"")),
        ("shell", box.shell),
        ("snapshot", box.snapshot),
        ("restore", lambda: box.restore(snapshot)),
        ("fork", box.fork),
        ("posture", box.posture),
        ("shell.run", lambda: shell.run("true")),
    ]
    for name, use in uses:
        with refused(SandboxClosed, f"{name} after close"):
            use()
    snapshot.release()


def context_manager_closes(subject: Subject) -> None:
    """Also when the block raises."""
    box = subject.create()
    with box as same:
        equal(same is box, True, "__enter__ returns the sandbox")
    with refused(KeyError, "a block that raises"), subject.create() as box:
        _raise(KeyError("x"))
    with refused(SandboxClosed, "exec after the block"):
        box.exec(["true"])


def nothing_runs_between_programs(subject: Subject) -> None:
    """What a program left in the background ends with it."""
    with subject.box() as box:
        succeeds(
            bash(box, "(while :; do echo x >> ticks; sleep 0.01; done) >/dev/null 2>&1 & sleep 0.2"), "ticks"
        )
        before = box.read("ticks")
        time.sleep(0.2)
        equal(box.read("ticks"), before, "what a program in the background writes after exec returned")


def only_the_workspace_lasts(subject: Subject) -> None:
    """Files of the workspace do, and `/tmp` does not."""
    with subject.box() as box:
        succeeds(bash(box, "echo x > kept; echo x > /tmp/gone; echo x > /dev/shm/gone"), "writing")
        equal(bash(box, "find . /tmp /dev/shm -mindepth 1").stdout.text, "./kept\n", "files")


def _raise(error: BaseException) -> None:
    raise error
