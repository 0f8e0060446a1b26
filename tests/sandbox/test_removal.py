from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.removal import remove_tree


def test_any_depth_is_removed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    opened = os.open(top, os.O_RDONLY)
    for number in range(3000):
        os.mkdir("x" * 100, dir_fd=opened)
        inner = os.open("x" * 100, os.O_RDONLY, dir_fd=opened)
        os.close(os.open(f"f{number}", os.O_WRONLY | os.O_CREAT, dir_fd=inner))
        os.close(opened)
        opened = inner
    os.close(opened)
    remove_tree(str(top))
    assert list(tmp_path.iterdir()) == []


def test_links_pipes_modes_and_chosen_names(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    top = tmp_path / "top"
    for name in ("a/.removed-0/b/c", ".removed-0/x/y", ".removed-1/x", "a/d/e", "wide/1/2"):
        (top / name).mkdir(parents=True)
    (top / "a" / "link").symlink_to(outside)
    (top / "a" / "d" / "file").write_text("x")
    os.mkfifo(top / "pipe")
    for name in range(300):
        (top / "wide" / f"{name}d").mkdir()
        (top / "wide" / f"{name}d" / "f").touch()
    for folder in (top / "a" / "d", top / "a", top / "wide"):
        folder.chmod(0)
    before = len(os.listdir("/proc/self/fd"))
    remove_tree(str(top))
    assert len(os.listdir("/proc/self/fd")) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["outside"]
    assert (outside / "kept").read_text() == "kept"


def test_an_absent_tree_is_no_error_and_a_link_is_not_followed(tmp_path: Path) -> None:
    remove_tree(str(tmp_path / "absent"))
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(OSError, match=r"Not a directory|Too many"):
        remove_tree(str(tmp_path / "link"))
    assert (tmp_path / "real").is_dir()


def test_another_file_system_is_left_alone(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    code = """
import os, sys, subprocess
from sandbox.removal import remove_tree
top = sys.argv[1]
os.makedirs(top + "/in/mounted")
subprocess.run(["mount", "-t", "tmpfs", "none", top + "/in/mounted"], check=True)
open(top + "/in/mounted/kept", "w").close()
try:
    remove_tree(top)
except OSError as error:
    assert error.errno in (16, 18), error
assert os.path.exists(top + "/in/mounted/kept") or os.listdir(top)
"""
    command = ["unshare", "-m", sys.executable, "-c", code, str(tmp_path / "top")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unshare failed" in done.stderr:
        pytest.skip(f"no mount namespace here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
