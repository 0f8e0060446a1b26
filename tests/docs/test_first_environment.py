"""The tutorial does what it says: its files are written, its commands run, its outputs found."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(sh|output|python)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROGRAMS = {"agent-rl": [sys.executable, "-m", "agent_rl.cli"], "python": [sys.executable]}


def run(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program, *arguments = shlex.split(line)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120"}
    return subprocess.run(
        [*_PROGRAMS[program], *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
        check=False,
    )


def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    blocks = _BLOCK.findall((ROOT / "docs/first-environment.md").read_text())
    assert [kind for kind, _, _ in blocks].count("sh") == 6
    shown = ""
    for kind, words, text in blocks:
        file, *how = words.split()[:2] or [""]
        if kind == "sh":
            done = [run(line, tmp_path) for line in text.splitlines()]
            shown = "".join(each.stdout for each in done)
            assert all((each.returncode != 0) == (file == "fails") for each in done), shown
        elif kind == "output":
            for line in text.splitlines():
                assert line in shown, f"{line!r} is not in what was shown:\n{shown}"
        elif how == ["replace"]:
            old, new = text.splitlines()
            source = (tmp_path / file).read_text()
            assert source.count(old) == 1
            (tmp_path / file).write_text(source.replace(old, new))
        else:
            (tmp_path / file).write_text(text)
