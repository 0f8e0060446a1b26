"""What people type and what they see: exit statuses, one-sentence mistakes, machine output."""

import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent_rl.cli import main
from agent_rl.cli.mistakes import explain

ROOT = Path(__file__).resolve().parents[3]
GUESS = "examples/02_own_environment/guess.py:Guess"


@pytest.fixture
def agent_rl(monkeypatch, capsys):
    """Run the command line in this process: arguments in, exit status and both streams out."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: str) -> SimpleNamespace:
        monkeypatch.setattr(sys, "argv", ["agent-rl", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return SimpleNamespace(returncode=ended.value.code or 0, stdout=said.out, stderr=said.err)

    return run


def test_help_is_quick_and_loads_no_torch():
    code = (
        "import sys; sys.argv = ['agent-rl', '--help']\n"
        "from agent_rl.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.returncode == 0, done.stderr
    assert all(verb in done.stdout for verb in ("train", "eval", "check", "play", "runs"))


def test_check_prints_json_and_its_status_is_the_verdict(agent_rl):
    done = agent_rl("check", GUESS, "--json", "--n", "2")
    report = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout
    assert report["target"] == GUESS
    assert report["passed"] is True
    assert {c["status"] for c in report["cases"]} <= {"pass", "unenforceable"}
    assert set(report["cases"][0]) == {"name", "status", "reason"}
    wrong = agent_rl("check", "guess-v9", "--json")
    assert wrong.returncode == 1
    assert json.loads(wrong.stdout)["passed"] is False


def test_check_of_a_sandbox_is_the_conformance_suite(agent_rl):
    wrong = agent_rl("check", "sandbox:bublewrap")
    assert wrong.returncode != 0
    assert "did you mean 'bubblewrap'" in wrong.stdout + wrong.stderr


@pytest.mark.slow
def test_check_of_a_sandbox_in_json(agent_rl):
    done = agent_rl("check", "sandbox:bubblewrap", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode == 0) == report["passed"]
    assert report["target"] == "sandbox:bubblewrap"
    assert len(report["cases"]) > 100


def test_eval_of_a_scripted_policy(agent_rl):
    done = agent_rl("eval", GUESS, "--policy", "gold", "--tasks", "20", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["success"] == 1.0
    assert report["tasks"] == 20
    assert 0 < report["low"] < 1


def test_eval_reports_the_bad_rows_of_a_file_and_uses_the_others(agent_rl, tmp_path):
    rows = (ROOT / "examples/02_own_environment/tasks.jsonl").read_text().splitlines()
    (tmp_path / "tasks.jsonl").write_text("\n".join([rows[0], "{not json", rows[1]]))
    done = agent_rl("eval", GUESS, "--policy", "gold", "--tasks-file", str(tmp_path / "tasks.jsonl"))
    assert done.returncode == 0, done.stderr
    assert "line 2: a row is one JSON" in " ".join(done.stdout.split())


def test_play_shows_every_message_within_80_columns(agent_rl):
    done = agent_rl("play", GUESS)
    assert done.returncode == 0, done.stderr
    assert "reward 1 (submitted)" in done.stdout
    assert "-> find(name=" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["train", "nothing.toml"], "cannot read the configuration"),
        (
            ["train", "examples/01_quickstart/quickstart.toml", "trainer.stps=3"],
            "did you mean trainer.steps?",
        ),
        (["train", "examples/01_quickstart/quickstart.toml", "credit.name=tree"], "set branching.name"),
        (
            ["train", "examples/01_quickstart/quickstart.toml", "context.name=sumarize"],
            "Did you mean 'summarize'",
        ),
        (["eval", "sql-v9"], "the latest is 'sql-v1'"),
        (["eval", "sql-v1", "--policy", "gld"], "it has"),
        (["eval", "sql-v1", "--option", "level"], "key=value"),
        (["runs", "show", "nowhere"], "no run here"),
    ],
)
def test_a_mistake_is_one_sentence_with_the_next_step(agent_rl, arguments, says, tmp_path):
    extra = [f"run_dir={tmp_path / 'run'}"] if arguments[0] == "train" and len(arguments) > 2 else []
    done = agent_rl(*arguments, *extra)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_disk_and_a_missing_extra_are_explained():
    full = OSError(errno.ENOSPC, "No space left on device", "/data/forest.npz")
    assert "continues from the newest checkpoint" in explain(full)
    assert "pip install 'agent-rl[train]'" in explain(
        ModuleNotFoundError("No module named 'torch'", name="torch")
    )
    assert explain(ModuleNotFoundError("No module named 'x'", name="x")) is None
    assert explain(ValueError("a bug somewhere else")) is None


def tiny_run(tmp_path: Path, **more) -> Path:
    from agent_rl.config import to_toml
    from tests.agent_rl.trainer.test_loop import config

    file = tmp_path / "c.toml"
    file.write_text(to_toml(config(tmp_path / "run", **more)))
    return file


def test_ctrl_c_says_how_to_go_on_and_the_same_command_does(agent_rl, tmp_path):
    file = tiny_run(tmp_path, steps=2)
    command = [sys.executable, "-m", "agent_rl.cli", "train", str(file)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (tmp_path / "run" / "config.toml").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    # A shell says 130 of both: CPython ends by the signal itself where it came inside an exec() of an import.
    assert process.returncode in (130, -signal.SIGINT), said
    assert "the same command continues" in said
    assert "Traceback" not in said
    done = agent_rl("train", str(file), "--json")
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)) == {"before", "after"}
    listed = json.loads(agent_rl("runs", "list", "--root", str(tmp_path), "--json").stdout)
    assert [(r["status"], r["steps"]) for r in listed] == [("finished", 2)]
    drawn = agent_rl("runs", "plot", str(tmp_path / "run"))
    assert Path(drawn.stdout.strip()).read_bytes().startswith(b"\x89PNG"), drawn.stderr
    shown = agent_rl("runs", "show", str(tmp_path / "run"))
    assert "after" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80


@pytest.fixture(params=[180, 240, 300, 360, 420])
def small_disk(request):
    """A disk that a run of 456 KiB fills, here or there.

    It lies outside pytest's folders: what a killed session leaves mounted must not break the next.
    """
    disk = Path(tempfile.mkdtemp(prefix="agent-rl-small-disk-"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={request.param}k", "none", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        disk.rmdir()
        pytest.skip(f"cannot mount a small disk here: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)
    disk.rmdir()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_disk_that_fills_while_saving_loses_nothing(agent_rl, tmp_path, small_disk):
    from agent_rl.config import to_toml
    from tests.agent_rl.trainer.test_loop import config

    file = tmp_path / "c.toml"
    file.write_text(to_toml(config(small_disk / "run", steps=2)))
    done = agent_rl("train", str(file))
    assert done.returncode == 2, done.stderr[-2000:]
    assert "disk" in done.stderr or "space" in done.stderr
    assert "Traceback" not in done.stderr
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    again = agent_rl("train", str(file))
    assert again.returncode == 0, again.stderr[-2000:]


def test_the_version_is_that_of_the_package(agent_rl):
    assert agent_rl("--version").stdout == f"agent-rl {version('agent-rl')}\n"
