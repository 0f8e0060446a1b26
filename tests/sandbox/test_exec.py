"""What `exec` of bubblewrap does beyond the contract, which `sandbox.conformance` tries."""

from __future__ import annotations

import pytest

from sandbox import Sandbox
from tests.sandbox.conftest import python


def test_the_whole_environment(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "tr_TR.UTF-8")
    lines = box.exec(["/usr/bin/env"], env={"MINE": "a=b c"}).stdout.text.splitlines()
    assert {line.split("=")[0] for line in lines} == {
        "PATH", "HOME", "USER", "LANG", "TZ", "TERM", "TMPDIR", "PWD", "MINE", "PYTHONHASHSEED",
        "PYTHONDONTWRITEBYTECODE",
    }  # fmt: skip
    assert {"LANG=C.UTF-8", "PYTHONHASHSEED=0", "PWD=/workspace"} <= set(lines)


def test_arguments_up_to_what_bubblewrap_takes(box: Sandbox) -> None:
    assert box.exec(["/bin/true", *["x"] * 7999]).ok
    with pytest.raises(ValueError, match="8001 words"):
        box.exec(["/bin/true", *["x"] * 8000])
    with pytest.raises(ValueError, match="environment variables"):
        box.exec(["/bin/true"], env={f"N{n}": "" for n in range(2001)})


def test_time_used_is_measured_also_when_killed(box: Sandbox) -> None:
    result = box.exec(["/bin/bash", "-c", "while :; do :; done"], timeout_s=1.0)
    assert result.reason == "timeout"
    assert 0.05 < result.usage.cpu_s < 1.5


def test_only_init_and_the_program_run(box: Sandbox) -> None:
    box.exec(["/bin/bash", "-c", "nohup sleep 60 >/dev/null 2>&1 & disown"])
    count = "import os; print(sum(name.isdigit() for name in os.listdir('/proc')))"
    assert python(box, count).stdout.text == "2\n"
