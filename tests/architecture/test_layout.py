"""The shape of the repository, checked by machine: contracts, names, sizes, imports, fields with readers."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("sandbox", "tools", "envs", "agent_rl")
SOURCES = sorted(p for package in PACKAGES for p in (ROOT / package).rglob("*.py"))
BANNED = {"utils.py", "util.py", "misc.py", "common.py", "helpers.py", "globals.py"}


def test_import_contracts_hold():
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_file_without_a_subject():
    assert [p for p in SOURCES if p.name in BANNED] == []


def test_every_folder_says_what_its_files_are():
    folders = {p.parent for p in SOURCES}
    missing = []
    for folder in sorted(folders):
        readme = folder / "README.md"
        if folder.parent == ROOT or (folder / "__init__.py").exists():
            names = [p.name for p in folder.glob("*.py") if p.name != "__init__.py"]
            text = readme.read_text() if readme.exists() else ""
            missing += [str((folder / n).relative_to(ROOT)) for n in names if n not in text]
    assert missing == []


@pytest.mark.parametrize(
    "package", ["sandbox", "tools", "envs", "agent_rl", "agent_rl.cli", "agent_rl.credit"]
)
def test_light_packages_load_no_gpu_stack(package):
    code = f"import sys, {package}; print([m for m in ('torch', 'transformers', 'vllm') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_another_package_of_the_same_name_is_named_in_the_error(tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "__init__.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-c", "import agent_rl"], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert done.returncode != 0
    assert str(tmp_path / "tools") in done.stderr


def test_no_broad_except_outside_the_named_boundaries():
    boundaries = {
        line.split()[0]
        for line in (ROOT / "tests/architecture/boundaries.txt").read_text().splitlines()
        if line and not line.startswith("#")
    }
    found = {
        str(p.relative_to(ROOT))
        for p in SOURCES
        if any(w in p.read_text() for w in ("except Exception", "except BaseException:\n        pass"))
    }
    assert found == boundaries
