"""Where the corpus of an episode comes from: the task's world or documents, a file or a server; each loaded once."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from envs.errors import TaskError
from envs.formats import BadRow
from envs.search.bm25 import Bm25
from envs.search.corpus import Corpus, read_corpus, read_document
from envs.search.dense import load_dense
from envs.search.remote import Remote
from envs.search.retrieval import Retriever
from envs.search.tasks import world_of
from envs.search.tokens import client_token

CORPUS_VARIABLE = "AGENT_RL_SEARCH_CORPUS"
_FILES_KEPT = 4
_SERVERS_KEPT = 16
_LOADING = threading.Lock()


def retriever_of(data: Mapping[str, Any], given: Retriever | None) -> Retriever:
    """What searches the corpus of a task: the one `given`, else what the task's data say.

    Raises:
        TaskError: they say nothing usable.
    """
    if given is not None:
        return given
    if "digest" in data and "number" in data:
        return world_of(data).retriever
    if "documents" in data:
        return _inline(data["documents"])
    if isinstance(data.get("corpus"), str):
        try:
            return from_file(data["corpus"])
        except (OSError, ValueError) as error:
            raise TaskError(f"the corpus of the task cannot be read: {error}") from error
    if where := os.environ.get(CORPUS_VARIABLE, ""):
        return open_corpus(where)
    raise TaskError(
        "this task has no corpus: pass corpus=FILE or corpus='http://...' to the environment, or set "
        f"{CORPUS_VARIABLE}"
    )


def open_corpus(where: str, *, vectors: str = "", encoder: str = "") -> Retriever:
    """A file (BM25, or dense with `vectors` and `encoder`) or the address of a server.

    Raises:
        OSError: the file cannot be read.
        ValueError: it holds no corpus, or the settings contradict each other.
    """
    if bool(vectors) != bool(encoder):
        raise ValueError(
            "dense retrieval needs both: vectors (a .npy file) and encoder (package.module:function)"
        )
    if where.startswith(("http://", "https://")):
        if vectors:
            raise ValueError("the server decides how it searches: give vectors and encoder to `serve search`")
        return _remote(where, client_token())
    if vectors:
        return load_dense(read_corpus(where), vectors, encoder)
    return from_file(where)


def from_file(path: str) -> Bm25:
    """BM25 over a file, loaded once for every episode of this process and again when the file changes.

    Raises:
        OSError: the file cannot be read.
        ValueError: it holds no document.
    """
    where = Path(path).resolve()
    found = where.stat()
    with _LOADING:  # two episodes that start together must not read a large file twice
        return _load(str(where), found.st_mtime_ns, found.st_size)


@functools.lru_cache(maxsize=_SERVERS_KEPT)
def _remote(address: str, token: str | None) -> Remote:
    return Remote(address, token=token)  # its connections are shared by all environments


@functools.lru_cache(maxsize=_FILES_KEPT)
def _load(path: str, mtime_ns: int, size: int) -> Bm25:
    del mtime_ns, size
    return Bm25(read_corpus(path))


def _inline(documents: Any) -> Bm25:
    if not isinstance(documents, list) or not all(isinstance(d, dict) for d in documents):
        raise TaskError("the documents of a task are a list of objects with id and contents")
    try:
        return Bm25(Corpus(map(read_document, documents)))
    except (BadRow, ValueError) as error:
        raise TaskError(f"the documents of a task: {error}") from error
