from __future__ import annotations

import contextlib
import os
import threading
from typing import Any

import pytest

from envs.code.env import CodeEnv
from envs.policies import calls, say
from envs.types import FaultError, Step, Task


@pytest.fixture
def task() -> Task:
    return CodeEnv.tasks("train", 1, 0, level=0, form="function")[0]


@pytest.fixture
def env(backend: str, task: Task) -> Any:
    made = CodeEnv(backend=backend)
    made.reset(options={"task": task})
    yield made
    made.close()


def use(env: CodeEnv, name: str, **arguments: Any) -> str:
    return env.step(calls((name, arguments))).observation[0]["content"]


def test_the_tools(env: CodeEnv) -> None:
    named = [tool["name"] for tool in env.tools]
    assert named == ["python", "shell", "read_file", "write_file", "edit_file", "test", "submit", "read_more"]


def test_reset_opens_no_sandbox(env: CodeEnv) -> None:
    assert env._agent is None


def test_tools_share_files_and_the_session_keeps_variables(env: CodeEnv) -> None:
    assert use(env, "write_file", path="a/b.txt", content="é\n") == "wrote 3 bytes"
    assert (
        use(env, "python", code="print(open('a/b.txt').read(), end=''); open('c', 'w').write('1'); x = 1")
        == "é"
    )
    assert use(env, "python", code="print(x)") == "1"
    assert use(env, "shell", command="cd a; export Y=1; cat ../c; echo; ls") == "1\nb.txt"
    assert use(env, "shell", command="echo $Y; pwd") == "\n/workspace"
    assert use(env, "read_file", path="a/b.txt") == "é\n"


def test_the_models_mistakes_are_observations(env: CodeEnv) -> None:
    assert use(env, "python", code="import sys; print('out'); sys.exit(3)") == "out\n[exit status 3]"
    assert "ZeroDivisionError" in use(env, "python", code="1 / 0")
    assert use(env, "shell", command="kill -9 $$").endswith("[exit status -9]")
    assert use(env, "python", code="pass") == "(no output)"
    for path in ("../x", "/etc/passwd", "none", ".", "a\0b"):
        assert use(env, "read_file", path=path).startswith("error: ")
    assert use(env, "write_file", path="../../x", content="").startswith("error: ")
    assert use(env, "write_file", path="x", content="y" * 300_000).startswith(
        "error: a file has at most 262144"
    )
    assert use(env, "shell", command="a" * 200_000).startswith("error: a command has at most 100000 bytes")
    assert use(env, "submit", code="x" * 100_001).startswith("error: a submission has at most 100000")


def test_nothing_survives_a_call(env: CodeEnv) -> None:
    use(env, "shell", command="(sleep 0.4; echo late > late.txt) > /dev/null 2>&1 & setsid sleep 30 &")
    assert use(env, "shell", command="sleep 0.6; ls; ps -e 2>/dev/null | grep -c sleep") in (
        "0\n[exit status 1]",
        "1",
    )


def finish(env: CodeEnv, code: str) -> Step:
    return env.step(calls(("submit", {"code": code})))


def test_submitting_the_reference_scores_one(env: CodeEnv, task: Task) -> None:
    step = finish(env, task.answer["solution"])
    assert (step.reward, step.terminated, step.info["stop"]) == (1.0, True, "submitted")
    assert env.verdict is not None
    assert env.verdict.passed == env.verdict.total
    assert step.observation[0]["content"] == "submitted"


@pytest.mark.parametrize("code", ["", "  \n", "def f(:"])
def test_empty_and_broken_submissions_score_zero(env: CodeEnv, code: str) -> None:
    assert finish(env, code).reward == 0.0


def test_ending_without_submitting_scores_zero(env: CodeEnv) -> None:
    step = env.step(say("The answer is in solution.py"))
    assert (step.reward, step.info["stop"]) == (0.0, "no_tool_call")
    assert [c.name for c in step.info["reward"].components] == ["tests", "fraction"]


def test_forks_share_a_past_and_nothing_after_it(env: CodeEnv, task: Task) -> None:
    use(env, "write_file", path="a", content="before")
    snapshot = env.snapshot()
    use(env, "write_file", path="a", content="after")
    other = env.restore(snapshot)
    third = env.restore(snapshot)
    snapshot.release()
    snapshot.release()
    assert use(other, "read_file", path="a") == "before"
    use(other, "write_file", path="a", content="other")
    assert use(third, "read_file", path="a") == "before"
    assert use(env, "read_file", path="a") == "after"
    assert finish(other, task.answer["solution"]).reward == 1.0
    assert finish(third, task.answer["near_misses"][0]).reward == 0.0
    for made in (other, third):
        made.close()
    assert use(env, "read_file", path="a") == "after"


def test_a_snapshot_outlives_its_environment(backend: str, task: Task) -> None:
    first = CodeEnv(backend=backend)
    first.reset(options={"task": task})
    use(first, "write_file", path="a", content="kept")
    snapshot = first.snapshot()
    first.close()
    second = first.restore(snapshot)
    assert use(second, "read_file", path="a") == "kept"
    snapshot.release()
    assert use(second, "read_file", path="a") == "kept"
    second.close()


def test_restore_equals_the_original_at_every_turn(backend: str, task: Task) -> None:
    actions = [
        calls(("write_file", {"path": "solution.py", "content": task.answer["solution"]})),
        calls(("shell", {"command": "wc -c solution.py && echo x >> log && cat log"})),
        calls(("python", {"code": "import os; print(sorted(os.listdir('.')), {'a', 'b', 'c'}, hash('q'))"})),
        calls(("submit", {"code": task.answer["solution"]})),
    ]
    env = CodeEnv(backend=backend)
    env.reset(options={"task": task})
    snapshots, steps = [env.snapshot()], []
    for action in actions:
        steps.append(env.step(action))
        snapshots.append(env.snapshot())
    env.close()
    for turn, snapshot in enumerate(snapshots):
        restored = env.restore(snapshot)
        assert [restored.step(action) for action in actions[turn:]] == steps[turn:]
        restored.close()
        snapshot.release()


def test_interrupt_from_another_thread_is_a_deadline_fault(env: CodeEnv) -> None:
    use(env, "write_file", path="a", content="")
    timer = threading.Timer(0.3, env.interrupt)
    timer.start()
    with pytest.raises(FaultError) as caught:
        use(env, "python", code="import time; time.sleep(8)")
    timer.join()
    assert (caught.value.fault.kind, caught.value.fault.stage) == ("deadline", "step")


@pytest.mark.parametrize("end", ["interrupt", "close"])
def test_cutting_the_grading_short_is_a_fault_and_not_a_zero(env: CodeEnv, end: str) -> None:
    timer = threading.Timer(0.5, getattr(env, end))
    timer.start()
    with pytest.raises(FaultError) as caught:
        finish(env, "import time\ntime.sleep(8)\n")
    timer.join()
    assert caught.value.fault.stage == "grade"
    assert caught.value.fault.kind == ("deadline" if end == "interrupt" else "environment")


def test_a_task_without_tests_is_a_task_fault(backend: str, task: Task) -> None:
    broken = Task(id="t", env="code-v1", prompt=task.prompt, data=task.data, answer={"tests": [], "rule": {}})
    env = CodeEnv(backend=backend)
    env.reset(options={"task": broken})
    with pytest.raises(FaultError) as caught:
        finish(env, "x = 1")
    env.close()
    assert (caught.value.fault.kind, caught.value.fault.stage) == ("task", "grade")


def test_nothing_is_left_open(backend: str, task: Task) -> None:
    def episode() -> None:
        env = CodeEnv(backend=backend)
        env.reset(options={"task": task})
        use(env, "write_file", path="a", content="x")
        other = env.fork()
        finish(other, "x = 1")
        other.close()
        env.close()

    episode()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        episode()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_workspace_that_cannot_be_entered_is_the_models_mistake(env: CodeEnv) -> None:
    use(env, "shell", command="chmod 000 /workspace")
    for name, arguments in (("shell", {"command": "ls"}), ("python", {"code": "1"})):
        assert use(env, name, **arguments) == (
            "Can't chdir to /workspace: Permission denied\n[exit status 126]"
        )
    env.snapshot().release()


DEEP = "import os\nfor _ in range(150): os.mkdir('d'); os.chdir('d')"
LINKS = "import os\nopen('big', 'wb').write(b'x' * (36 << 20))\nfor i in range(8): os.link('big', f'l{i}')"
FULL = "open('big', 'wb').write(b'x' * (60 << 20))\nopen('rest', 'wb').write(b'x' * (8 << 20))"


def once(env: CodeEnv, code: str) -> str:
    """Python in a process of its own, which leaves no session behind."""
    return use(env, "shell", command=f"python3 - <<'END'\n{code}\nEND")


@pytest.mark.parametrize("code", [DEEP, LINKS, FULL])
def test_an_odd_workspace_is_copied_whole(env: CodeEnv, code: str) -> None:
    # Layers are put together once they take half of the room: deep, one file of many names, full.
    for step in (code, "open('f', 'wb').write(b'x' * (34 << 20))", "open('g', 'w')"):
        once(env, step)
        snapshot = env.snapshot()
    assert snapshot.state is not None
    with contextlib.closing(env.restore(snapshot)) as other:
        assert once(other, "import os; print(os.path.exists('g'))") == "True"


def test_a_session_that_dies_or_hangs_is_an_observation(
    env: CodeEnv,
) -> None:
    lost = "the session ended, its variables are gone; the next call starts a new one]"
    use(env, "python", code="x = 1")
    assert use(env, "python", code="import os; os._exit(0)") == f"[{lost}"
    assert "NameError" in use(env, "python", code="print(x)")
    assert use(env, "python", code="import os, signal; os.kill(os.getppid(), 9)") == f"[{lost}"
    assert use(env, "python", code="print('\\ud800')").splitlines()[-1].startswith("UnicodeEncodeError")
    assert use(env, "python", code="import os; os.system('echo shell'); print(input())").startswith("shell\n")
    shown = use(env, "python", code="print('a' * 10**6); print('z')")
    assert "read_more" in shown
    assert len(shown) <= 8200
    assert use(env, "python", code="x" * 100_001).startswith("error: a piece of code has at most 100000")


def test_a_restore_replays_a_session_from_the_initial_files(env: CodeEnv) -> None:
    use(env, "python", code="x = [1]; open('count', 'a').write('.')")
    snapshot = env.snapshot()
    assert snapshot.state is None
    use(env, "python", code="x.append(2)")
    other = env.restore(snapshot)
    assert use(other, "python", code="print(x, open('count').read())") == "[1] ."
    other.close()


def test_the_examples_are_paid_once(backend: str, task: Task) -> None:
    env = CodeEnv(backend=backend, examples_weight=0.1)
    env.reset(options={"task": task})

    def test(code: str) -> Step:
        return env.step(calls(("test", {"code": code})))

    wrong = test("x = 1")
    assert wrong.reward == 0.0
    assert wrong.observation[0]["content"].startswith("0 of 2 examples pass; example 1: ended with status")
    right = test(task.answer["solution"])
    assert (right.reward, right.observation[0]["content"]) == (0.1, "2 of 2 examples pass")
    snapshot = env.snapshot()
    assert test(task.answer["solution"]).reward == 0.0
    other = env.restore(snapshot)
    assert other.step(calls(("test", {"code": task.answer["solution"]}))).reward == 0.0
    assert finish(env, task.answer["solution"]).reward == 1.0
    for made in (env, other):
        made.close()


def test_a_share_can_be_paid(backend: str, task: Task) -> None:
    env = CodeEnv(backend=backend, reward="fraction")
    env.reset(options={"task": task})
    reward = finish(env, task.answer["near_misses"][0]).reward
    assert env.verdict is not None
    assert reward == env.verdict.passed / env.verdict.total < 1
    env.close()
    with pytest.raises(ValueError, match="'binary' or 'fraction', got 'half'"):
        CodeEnv(reward="half")  # type: ignore[arg-type]


def test_a_file_is_mended_and_handed_in(backend: str) -> None:
    (task,) = CodeEnv.tasks("train", 1, 0, level=1, form="edit")
    env = CodeEnv(backend=backend)
    env.reset(options={"task": task})
    wrong = use(env, "read_file", path="solution.py")
    assert wrong == task.data["files"]["solution.py"]
    assert use(env, "edit_file", path="solution.py", old="no such text", new="").startswith(
        "error: the old text"
    )
    assert use(env, "edit_file", path="solution.py", old=wrong, new=task.answer["solution"]).startswith(
        "wrote"
    )
    assert use(env, "read_file", path="solution.py") == task.answer["solution"]
    assert use(env, "test") == "2 of 2 examples pass"
    assert env.step(calls(("submit", {}))).reward == 1.0
    env.reset(options={"task": task})
    assert env.step(calls(("submit", {}))).reward == 0.0
    env.close()
