"""Dense retrieval: vectors of the documents in a NumPy file, and a function that encodes queries."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from envs.search.corpus import Corpus
from envs.search.retrieval import Hit, best

Encoder = Callable[[list[str]], Any]
"""From texts to vectors, `[texts, width]`."""


class Dense:
    """Inner product of a query's vector with every document's; exact, no index."""

    def __init__(self, corpus: Corpus, vectors: npt.NDArray[Any], encode: Encoder) -> None:
        """Keep the vectors.

        Args:
            corpus: the documents.
            vectors: `[documents, width]`, in the corpus's order; may be memory-mapped.
            encode: called with a list of queries.

        Raises:
            ValueError: the shape does not fit the corpus.
        """
        if vectors.ndim != 2 or len(vectors) != len(corpus.documents) or vectors.dtype.kind != "f":
            raise ValueError(
                f"vectors are floats of shape [{len(corpus.documents)}, width], one row a document, "
                f"got {vectors.dtype} {list(vectors.shape)}"
            )
        self.corpus, self._vectors, self._encode = corpus, vectors, encode

    def retrieve(self, queries: Sequence[str], topk: int) -> list[list[Hit]]:
        """The documents with the largest inner products.

        Raises:
            ValueError: the encoder gave vectors of another shape, or numbers that are not finite.
        """
        encoded = np.asarray(self._encode(list(queries)), dtype=np.float32)
        if encoded.shape != (len(queries), self._vectors.shape[1]) or not np.isfinite(encoded).all():
            raise ValueError(
                f"an encoder gives finite vectors of shape [{len(queries)}, {self._vectors.shape[1]}], "
                f"got shape {list(encoded.shape)}"
            )
        return [best(self.corpus, (self._vectors @ vector).astype(np.float32), topk) for vector in encoded]


def load_dense(corpus: Corpus, vectors: str | os.PathLike[str], encoder: str) -> Dense:
    """Dense retrieval from a `.npy` file and `package.module:function`.

    Raises:
        OSError: the file cannot be read.
        ValueError: it holds other vectors, or the function cannot be found.
    """
    loaded = np.load(vectors, mmap_mode="r", allow_pickle=False)
    return Dense(corpus, loaded, load_encoder(encoder))


def load_encoder(name: str) -> Encoder:
    """The function of `package.module:function`.

    Raises:
        ValueError: there is none.
    """
    module, colon, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute) if colon else None
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"the encoder {name!r} cannot be imported: {error}") from error
    if not callable(found):
        raise ValueError(f"an encoder is package.module:function, got {name!r}")
    encode: Encoder = found
    return encode
