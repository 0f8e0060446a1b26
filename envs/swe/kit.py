"""pytest for sandboxes: the installed one, packed into a single zip that Python imports from.

The sandbox's own Python has no pytest, and it must not need a network. What is packed are pure-Python packages,
compiled once a process by the sandbox's interpreter, so that a test run does not compile them each time.
"""

from __future__ import annotations

import functools
import importlib.util
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import sandbox as sandboxes
from envs.errors import TaskError
from sandbox.types import MIB, Limits, SandboxSpec

PACKAGES = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py")
PYTHON = "/usr/bin/python3"
_PYGMENTS = {
    "lexers": {"__init__", "_mapping", "python", "diff"},
    "formatters": {"__init__", "_mapping", "terminal"},
    "styles": {"__init__", "_mapping", "default"},
    "filters": {"__init__"},
}
"""Of Pygments, what pytest imports; its other 300 lexers would make most of the zip."""
_SECONDS = 60.0

_COMPILE = r"""
import importlib.util, marshal, zipfile
source, packed = zipfile.ZipFile("source.zip"), zipfile.ZipFile("kit.zip", "w", zipfile.ZIP_DEFLATED)
for name in source.namelist():
    text = source.read(name)
    head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + importlib.util.source_hash(text)
    data = head + marshal.dumps(compile(text, name, "exec", dont_inherit=True))
    packed.writestr(zipfile.ZipInfo(name + "c"), data, zipfile.ZIP_DEFLATED)
packed.close()
"""


@functools.cache
def kit(backend: str = "bubblewrap") -> bytes:
    """The zip, made once a process for each backend.

    Raises:
        TaskError: pytest is not installed, or the sandbox's Python cannot compile it.
        SandboxUnavailable: the backend cannot run here.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for name, data in _sources():
            file.writestr(name, data)
    limits = Limits(timeout_s=_SECONDS)
    with sandboxes.create(
        SandboxSpec(files={"source.zip": packed.getvalue()}, limits=limits), backend
    ) as box:
        done = box.exec([PYTHON, "-I", "-S", "-c", _COMPILE])
        if not done.ok:
            raise TaskError(
                f"the sandbox's Python ({PYTHON}) cannot compile pytest: {done.stderr.text[-300:]}"
            )
        return box.read("kit.zip", max_bytes=16 * MIB)


def _sources() -> Iterator[tuple[str, bytes]]:
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise TaskError(f"swe-v1 needs the package {name!r}: pip install 'agent-rl[swe]'")
        origin = Path(spec.origin)
        if origin.name != "__init__.py":
            yield origin.name, origin.read_bytes()
            continue
        for path in sorted(origin.parent.rglob("*.py")):
            parts = path.relative_to(origin.parent).parts
            if name != "pygments" or len(parts) == 1 or path.stem in _PYGMENTS.get(parts[0], ()):
                yield "/".join((name, *parts)), path.read_bytes()
