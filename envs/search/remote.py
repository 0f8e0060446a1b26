"""A corpus on a server: `POST /retrieve` of this project or of Search-R1. Everything it answers is hostile.

A server that is down, slow or answers garbage is a fault, retryable: it never becomes an observation or a reward.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx

from envs.search.corpus import read_document
from envs.search.retrieval import Hit
from envs.types import Fault, FaultError
from sandbox.remote.tokens import check_token

MAX_ANSWER_BYTES = 32 << 20
ATTEMPTS = 3
_PAUSE_S = 0.2


class Remote:
    """Asks a server for documents; safe to use from several threads."""

    def __init__(self, address: str, *, token: str | None = None, timeout_s: float = 8.0) -> None:
        """Remember where the server is; nothing is sent yet.

        Args:
            address: `http://HOST:PORT`, with or without `/retrieve`.
            token: sent as `Authorization: Bearer`, to this address only (redirects are not followed).
            timeout_s: for one attempt, of which there are `ATTEMPTS`.

        Raises:
            ValueError: the address is none, or names a user.
        """
        try:
            parts = urlsplit(str(httpx.URL(address)))
        except httpx.InvalidURL as error:
            raise ValueError(f"{address!r:.100} is no address: {error}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise ValueError(
                f"a corpus server is http://HOST:PORT or https://HOST:PORT, got {address!r:.100}"
            )
        self.address = address.rstrip("/").removesuffix("/retrieve")
        self._timeout_s = timeout_s
        headers = {"accept-encoding": "identity"}  # what unpacks to gigabytes is not unpacked
        headers |= {"authorization": f"Bearer {check_token(token)}"} if token else {}
        unlimited = httpx.Limits(
            max_connections=None, max_keepalive_connections=64
        )  # nobody waits unseen for one
        self._client = httpx.Client(headers=headers, timeout=timeout_s, trust_env=False, limits=unlimited)

    def retrieve(self, queries: Sequence[str], topk: int) -> list[list[Hit]]:
        """The server's hits; asking again is safe, so a failed attempt is repeated.

        Raises:
            FaultError: of kind `environment`, retryable: the server is unreachable, refuses, or answers garbage.
        """
        body = {"queries": list(queries), "topk": topk, "return_scores": True}
        why = ""
        for attempt in range(ATTEMPTS):
            time.sleep(_PAUSE_S * attempt)
            try:
                return read_answer(self._ask(body), len(queries), topk)
            except (httpx.HTTPError, ValueError) as error:  # BadRow is a ValueError, so is what json raises
                why = f"{type(error).__name__}: {error}"
        detail = f"the corpus server at {self.address} gave no usable answer in {ATTEMPTS} attempts; the last: {why}"
        raise FaultError(Fault(kind="environment", stage="step", retryable=True, detail=detail[:500]))

    def close(self) -> None:
        """Close the connections; what waits for an answer fails."""
        self._client.close()

    def _ask(self, body: Mapping[str, Any]) -> bytes:
        until = time.monotonic() + self._timeout_s  # httpx limits each read, not all of them together
        received = bytearray()
        with self._client.stream("POST", f"{self.address}/retrieve", json=body) as reply:
            for piece in reply.iter_raw():
                received += piece
                if len(received) > MAX_ANSWER_BYTES or time.monotonic() > until:
                    raise ValueError(
                        f"an answer has at most {MAX_ANSWER_BYTES} bytes and {self._timeout_s:g} s"
                    )
        if reply.status_code != 200:
            raise ValueError(f"status {reply.status_code}: {bytes(received[:200])!r}")
        return bytes(received)


def read_answer(raw: bytes, queries: int, topk: int) -> list[list[Hit]]:
    """The hits of an answer, with scores or without.

    Raises:
        ValueError: it is none to so many queries.
    """
    try:
        answer = json.loads(raw)
    except RecursionError as error:
        raise ValueError("the answer is nested too deeply") from error
    lists = answer.get("result") if isinstance(answer, dict) else None
    if not isinstance(lists, list) or len(lists) != queries:
        raise ValueError(f"an answer to {queries} queries has as many lists under 'result'")
    return [_hits(each, topk) for each in lists]


def _hits(found: Any, topk: int) -> list[Hit]:
    if not isinstance(found, list) or len(found) > topk:
        raise ValueError(f"at most {topk} documents were asked for")
    hits = [_hit(each, place) for place, each in enumerate(found)]
    if len({hit.document.id for hit in hits}) != len(hits):
        raise ValueError("a document is given twice")
    return hits


def _hit(given: Any, place: int) -> Hit:
    if not isinstance(given, dict):
        raise ValueError(f"a hit is an object, got {type(given).__name__}")
    document, score = given, -float(place)
    if "document" in given:
        document, score = given["document"], given.get("score", score)
    if not isinstance(document, dict):
        raise ValueError(f"a document is an object, got {type(document).__name__}")
    return Hit(read_document(document), _score(score))


def _score(given: Any) -> float:
    try:
        score = float(given) if isinstance(given, int | float) else math.nan
    except OverflowError:  # a whole number of hundreds of digits
        score = math.nan
    if not math.isfinite(score):
        raise ValueError(f"a score is a finite number, got {type(given).__name__}")
    return score
