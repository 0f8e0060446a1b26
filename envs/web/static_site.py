"""Serves the files of one folder, read-only: an application that never leaves the folder and follows no links."""

from __future__ import annotations

import mimetypes
import os
import stat
from pathlib import Path
from typing import Any
from urllib.parse import unquote

MAX_FILE_BYTES = 16 << 20


class StaticSite:
    """An ASGI application over a folder. A path that ends in `/` is its `index.html`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        body, kind, status = b"not found", "text/plain; charset=utf-8", 404
        if scope["method"] in ("GET", "HEAD"):
            path = scope["path"] + ("index.html" if scope["path"].endswith("/") else "")
            found = read_beneath(self._folder, path)
            if found is not None:
                body, kind, status = found, mimetypes.guess_type(path)[0] or "application/octet-stream", 200
        headers = [(b"content-type", kind.encode()), (b"cache-control", b"no-store")]
        headers.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body if scope["method"] != "HEAD" else b""})


def read_beneath(folder: Path, path: str) -> bytes | None:
    """The content of a regular file beneath a folder; None for everything else, links included."""
    parts = [part for part in unquote(path).split("/") if part not in ("", ".")]
    if not parts or ".." in parts or any("\0" in part or part.startswith(".") for part in parts):
        return None
    try:
        at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            flags = (
                os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | (0 if last else os.O_DIRECTORY)
            )
            below = os.open(part, flags, dir_fd=at)
            os.close(at)
            at = below
        found = os.fstat(at)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_FILE_BYTES:
            return None
        with os.fdopen(os.dup(at), "rb") as file:
            return file.read(MAX_FILE_BYTES)
    except OSError:
        return None
    finally:
        os.close(at)
