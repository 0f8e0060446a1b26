from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from envs.policies import calls, say
from envs.swe.env import SweEnv
from envs.types import FaultError, Step, Task
from tests.envs.swe.plays import use


@pytest.fixture(scope="module")
def task() -> Task:
    return SweEnv.tasks("train", 1, 0, level=0)[0]


@pytest.fixture
def env(backend: str, task: Task) -> Iterator[SweEnv]:
    made = SweEnv(backend=backend)
    made.reset(options={"task": task})
    yield made
    made.close()


def submit(env: SweEnv) -> Step:
    return env.step(calls(("submit", {})))


def test_tools_are_the_six_and_read_more(env: SweEnv) -> None:
    names = [tool["name"] for tool in env.tools]
    assert names == ["shell", "view", "edit", "search", "run_tests", "submit", "read_more"]
    assert env._agent is None


def test_the_shell_carries_directory_and_variables_and_no_process(env: SweEnv) -> None:
    assert use(env, "shell", command="pwd; export A='x y'; B=1; cd tests; (sleep 30 &) ; false") == (
        "/workspace/repo\n[exit status 1]"
    )
    assert (
        use(env, "shell", command='echo "$A$B"; pwd; pgrep sleep | wc -l') == "x y\n/workspace/repo/tests\n0"
    )
    assert use(env, "shell", command="cd ..; exit 3") == "[exit status 3]"
    assert (
        use(env, "shell", command="pwd; rm -rf /workspace/.shell; mkdir -p /workspace/.shell/folder")
        == "/workspace/repo"
    )
    assert use(env, "shell", command="pwd") == "/workspace/repo"


def test_edits_replace_insert_create_and_undo(env: SweEnv) -> None:
    assert use(env, "edit", command="create", path="a.txt", new="one\ntwo\n") == "wrote a.txt (2 lines)"
    assert use(env, "edit", command="replace", path="a.txt", old="two", new="2") == (
        "edited a.txt:\n    1  one\n    2  2"
    )
    assert use(env, "edit", command="insert", path="a.txt", new="half", line=1).startswith("edited a.txt:")
    assert use(env, "view", path="a.txt") == "    1  one\n    2  half\n    3  2"
    assert use(env, "edit", command="undo", path="a.txt") == "undid the last edit of a.txt"
    assert use(env, "view", path="/workspace/repo/a.txt") == "    1  one\n    2  2"
    for _ in range(2):
        use(env, "edit", command="undo", path="a.txt")
    assert use(env, "view", path="a.txt") == "error: 'a.txt' does not exist"
    assert use(env, "edit", command="undo", path="a.txt").startswith("error: nothing to undo")


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("edit", {"command": "replace", "path": "README.md", "old": "nowhere", "new": ""}, "does not occur"),
        ("edit", {"command": "replace", "path": "README.md", "old": "`", "new": ""}, "occurs "),
        ("edit", {"command": "replace", "path": "README.md", "old": "", "new": ""}, "replace needs"),
        ("edit", {"command": "insert", "path": "README.md", "new": "", "line": 99}, "line is 0"),
        ("edit", {"command": "create", "path": "../../x", "new": ""}, "contains '..'"),
        ("edit", {"command": "create", "path": "/etc/x", "new": ""}, "lies outside"),
        ("view", {"path": "none.py"}, "does not exist"),
        ("view", {"path": "README.md", "first": 0}, "first is at least 1"),
        ("run_tests", {"path": "-p evil"}, "a path of tests"),
        ("search", {"pattern": "x\0"}, "a pattern has at most"),
        ("shell", {"command": "a" * 200_000}, "a command has at most"),
    ],
)
def test_mistakes_are_observations(env: SweEnv, name: str, arguments: dict[str, object], told: str) -> None:
    answer = use(env, name, **arguments)
    assert answer.startswith("error: ")
    assert told in answer


def test_search_view_and_tests_show_the_repository(env: SweEnv, task: Task) -> None:
    package = task.data["package"]
    assert use(env, "search", pattern="^def run", path=package).startswith(f"{package}/reports.py:")
    assert use(env, "search", pattern="no such text") == "no line matches"
    assert f"{package}/" in use(env, "view", path=".").splitlines()
    passed = use(env, "run_tests").splitlines()[-1]
    assert passed == f"{len(task.answer['pass_to_pass'])} passed"


def test_the_evidence_comes_with_the_reward(env: SweEnv, task: Task) -> None:
    for path, edits in task.answer["edits"].items():
        for edit in edits:
            use(env, "edit", command="replace", path=path, old=edit["old"], new=edit["new"])
    use(env, "edit", command="create", path="notes/new.txt", new="kept")
    use(env, "edit", command="create", path="conftest.py", new="1 / 0")
    step = submit(env)
    assert (step.reward, step.terminated, step.info["stop"]) == (1.0, True, "submitted")
    evidence = step.info["evidence"]
    assert evidence["kind"] == "replayed"
    assert evidence["replay"]["passed"] == evidence["replay"]["total"] >= 5
    assert evidence["dropped"] == ("conftest.py",)
    assert set(evidence["changed"]) == {*task.answer["edits"], "notes/new.txt"}
    assert "+kept" in evidence["diff"]
    names = [c.name for c in step.info["reward"].components]
    assert names == ["resolved", "fail_to_pass", "pass_to_pass", "replay"]


def test_without_submit_nothing_is_graded(env: SweEnv) -> None:
    step = env.step(say("It is repaired."))
    assert (step.reward, step.info["stop"]) == (0.0, "no_tool_call")
    assert step.info["evidence"]["reason"] == "nothing was submitted"


def test_a_restored_episode_goes_on_alike(env: SweEnv, task: Task) -> None:
    use(env, "shell", command="export A=1; cd tests; echo x > ../a")
    use(env, "edit", command="create", path="a", new="y")
    snapshot = env.snapshot()
    use(env, "edit", command="undo", path="a")
    for _ in range(2):
        with contextlib.closing(env.restore(snapshot)) as other:
            assert use(other, "shell", command="cat ../a; echo $A") == "y1"
            assert use(other, "edit", command="undo", path="a") == "undid the last edit of a"
            assert use(other, "shell", command="cat ../a") == "x"
    with contextlib.closing(env.restore(replace(snapshot, state=None, on_release=None))) as replayed:
        assert use(replayed, "shell", command="cat ../a; echo $A") == "y1"
    snapshot.release()
    assert use(env, "shell", command="cat ../a") == "x"


@pytest.mark.parametrize("end", ["interrupt", "close"])
def test_cutting_a_tool_or_the_grading_short_is_a_fault(env: SweEnv, end: str, task: Task) -> None:
    package = task.data["package"]
    use(env, "shell", command=f"echo 'import time; time.sleep(9)' >> {package}/__init__.py")
    timer = threading.Timer(1.0, getattr(env, end))
    timer.start()
    with pytest.raises(FaultError) as caught:
        submit(env)
    timer.join()
    assert caught.value.fault.stage == "grade"
    assert caught.value.fault.kind == ("deadline" if end == "interrupt" else "environment")


@pytest.mark.parametrize("answer", [None, {}, {"trusted": {}, "fail_to_pass": [], "pass_to_pass": []}])
def test_a_task_that_cannot_be_graded_is_a_task_fault(backend: str, task: Task, answer: object) -> None:
    env = SweEnv(backend=backend)
    with pytest.raises(FaultError) as caught:
        env.reset(options={"task": replace(task, answer=answer)})
    env.close()
    assert (caught.value.fault.kind, caught.value.fault.stage) == ("task", "reset")


def test_nothing_is_left_open(backend: str, task: Task) -> None:
    def episode() -> None:
        with contextlib.closing(SweEnv(backend=backend)) as env:
            env.reset(options={"task": task})
            use(env, "shell", command="true")
            with contextlib.closing(env.fork()) as other:
                use(other, "shell", command="true")

    episode()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        episode()
    assert len(os.listdir("/proc/self/fd")) == before
