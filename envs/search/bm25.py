"""BM25 over a corpus in this process, by the library bm25s."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from envs.errors import EnvError
from envs.search.corpus import Corpus
from envs.search.retrieval import Hit, best

INSTALL = "search-v1 needs bm25s: pip install 'agent-rl[search]'"


class Bm25:
    """Lucene's BM25 over title and text: English stop words left out, no stemming; read-only once built."""

    def __init__(self, corpus: Corpus) -> None:
        """Index the corpus.

        Raises:
            EnvError: bm25s is not installed.
        """
        self._library = _library()
        self.corpus = corpus
        tokens = self._tokens([f"{d.title}\n{d.text}" for d in corpus.documents])
        self._index = self._library.BM25(backend="numpy")
        self._vocabulary: Mapping[str, int] = {}
        if any(tokens):  # a corpus of stop words alone finds nothing
            self._index.index(tokens, show_progress=False)
            self._vocabulary = self._index.vocab_dict

    def retrieve(self, queries: Sequence[str], topk: int) -> list[list[Hit]]:
        """The best documents that share a word with each query; fewer than `topk` where fewer do."""
        found = []
        for words in self._tokens(list(queries)):
            known = [word for word in words if word in self._vocabulary]
            found.append(best(self.corpus, self._index.get_scores(known), topk, above=0.0) if known else [])
        return found

    def _tokens(self, texts: list[str]) -> list[list[str]]:
        tokens: list[list[str]] = self._library.tokenize(
            texts, stopwords="en", return_ids=False, show_progress=False
        )
        return tokens


def _library() -> Any:
    try:
        import bm25s
    except ModuleNotFoundError as error:
        if error.name == "bm25s":
            raise EnvError(INSTALL) from None
        raise
    return bm25s
