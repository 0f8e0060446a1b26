"""One file of named arrays and a JSON value: an `.npz` that is read without pickle.

The JSON stands in the array `meta` as UTF-8 bytes. Equal content gives equal bytes.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agent_rl.storage import atomic
from agent_rl.storage.errors import DamagedFile

Arrays = Mapping[str, npt.NDArray[Any]]


def save(path: Path, meta: Mapping[str, Any], arrays: Arrays) -> int:
    """Write the file atomically; returns its size in bytes.

    Raises:
        StorageFull: there is no space; an earlier file at `path` is intact.
    """
    text = json.dumps(meta, ensure_ascii=True, separators=(",", ":"), default=_number)
    buffer = io.BytesIO()
    encoded = np.frombuffer(text.encode(), np.uint8)
    np.savez_compressed(buffer, allow_pickle=False, meta=encoded, **arrays)
    content = buffer.getvalue()
    atomic.write(path, content)
    return len(content)


def load(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read a file whose meta says `"kind": kind`.

    Raises:
        FileNotFoundError: there is none.
        DamagedFile: it was cut or changed, or is of another kind.
    """
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        meta = json.loads(arrays.pop("meta").tobytes())
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, AttributeError) as error:
        raise DamagedFile(path, str(error)) from error
    if not isinstance(meta, dict) or meta.get("kind") != kind:
        raise DamagedFile(path, f"it does not hold a {kind}")
    return meta, arrays


def _number(value: object) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"only JSON values can be stored, got {type(value).__name__}: {value!r}")
