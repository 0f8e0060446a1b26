"""`agent-rl new`: a working environment to start from, with its test."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from pathlib import Path


def files(name: str) -> Mapping[str, str]:
    """The files of a new environment by name: the environment, and its test.

    Raises:
        ValueError: the name cannot be a Python module.
    """
    module = name.replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", module) or keyword.iskeyword(module):
        raise ValueError(f"a name is lower-case letters, digits and _, beginning with a letter, got {name!r}")
    words = {
        "MODULE": module,
        "CLASS": "".join(part.capitalize() for part in module.split("_")),
        "ID": f"{module.strip('_').replace('_', '-')}-v1",
    }
    templates = {f"{module}.py": "environment.template", f"test_{module}.py": "test.template"}
    return {file: _filled(template, words) for file, template in templates.items()}


def write(name: str, folder: Path) -> list[Path]:
    """Write the files of a new environment into a folder, and return their paths.

    Raises:
        FileExistsError: one of them is there already; nothing is written.
        ValueError: the name cannot be a Python module.
    """
    made = {folder / file: text for file, text in files(name).items()}
    for path in made:
        if path.exists():
            raise FileExistsError(f"{path} is there already: choose another name or folder")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in made.items():
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    return list(made)


def _filled(template: str, words: Mapping[str, str]) -> str:
    text = Path(__file__).with_name(template).read_text(encoding="utf-8")
    for word, meaning in words.items():
        text = re.sub(rf"\b{word}\b", meaning, text)
    return text
