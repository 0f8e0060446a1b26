"""A corpus server that speaks Search-R1's protocol.

POST /retrieve  {"queries": ["...", ...], "topk": 3, "return_scores": true}
    with scores     {"result": [[{"document": {"id": "0", "contents": "..."}, "score": 1.5}, ...], ...]}
    without         {"result": [[{"id": "0", "contents": "..."}, ...], ...]}
GET  /health    {"ok": true}

An unusable request is answered by 400, 401, 408 or 413 and one sentence; with too much waiting, by 503.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from envs.search.retrieval import MAX_TOPK, Hit, Retriever
from sandbox.remote.tokens import check_token, holder

MAX_BODY_BYTES = 4 << 20
MAX_QUERIES = 1024
MAX_QUERY_CHARS = 10_000
_BODY_S = 10.0
_WAITING = 256
_START_S = 30.0


class _Query(BaseModel):
    """The body of a request; as other servers do, `topk` may be left out or null."""

    model_config = ConfigDict(extra="ignore", strict=True)

    queries: list[str] = Field(min_length=1, max_length=MAX_QUERIES)
    topk: int | None = Field(default=None, ge=1, le=MAX_TOPK)
    return_scores: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Where a corpus server listens and who may ask.

    Raises:
        ValueError: other machines could reach it and there is no token.
    """

    host: str = "127.0.0.1"
    port: int = 8702
    """0 picks a free one."""
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)
    """By client's name; empty lets everybody on this machine ask."""
    topk: int = 3
    """For requests that name none."""

    def __post_init__(self) -> None:
        for token in self.tokens.values():
            check_token(token)
        if not self.tokens and not _is_loopback(self.host):
            raise ValueError(
                f"a server on {self.host} can be reached by others and needs a token: give --token-file, or set "
                "AGENT_RL_SEARCH_TOKEN"
            )
        if not 1 <= self.topk <= MAX_TOPK:
            raise ValueError(f"topk is 1 to {MAX_TOPK}, got {self.topk}")


def make_app(retriever: Retriever, settings: ServerSettings) -> FastAPI:
    """The application over a retriever; as many requests search at once as there are processors."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    running = asyncio.Semaphore(os.cpu_count() or 1)
    waiting = [0]

    @app.post("/retrieve", response_model=None)
    async def retrieve(request: Request) -> dict[str, Any]:
        _admit(request, settings)
        query = _parse(await _body(request))
        if waiting[0] >= _WAITING:
            raise HTTPException(503, "too many requests wait: try again later", {"retry-after": "1"})
        waiting[0] += 1
        try:
            async with running:
                found = await asyncio.to_thread(
                    retriever.retrieve, query.queries, query.topk or settings.topk
                )
        finally:
            waiting[0] -= 1
        return {"result": [[_shown(hit, query.return_scores) for hit in hits] for hits in found]}

    @app.get("/health", response_model=None)
    async def health(request: Request) -> dict[str, Any]:
        _admit(request, settings)
        return {"ok": True}

    return app


def _shown(hit: Hit, scores: bool) -> dict[str, Any]:
    document = {"id": hit.document.id, "contents": hit.document.contents}
    return {"document": document, "score": hit.score} if scores else document


def _admit(request: Request, settings: ServerSettings) -> None:
    if settings.tokens and holder(settings.tokens, request.headers.get("authorization", "")) is None:
        raise HTTPException(401, "this server needs a token: Authorization: Bearer TOKEN")


async def _body(request: Request) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_S):
            async for piece in request.stream():
                body += piece
                if len(body) > MAX_BODY_BYTES:
                    raise HTTPException(413, f"a request has at most {MAX_BODY_BYTES} bytes")
    except TimeoutError:
        raise HTTPException(408, f"a request arrives within {_BODY_S:g} s") from None
    return bytes(body)


def _parse(body: bytes) -> _Query:
    try:
        query = _Query.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"])) or "the body"
        raise HTTPException(400, f"{where}: {first['msg']}"[:300]) from None
    if any(len(text) > MAX_QUERY_CHARS for text in query.queries):
        raise HTTPException(400, f"a query has at most {MAX_QUERY_CHARS} characters")
    return query


# ------------------------------------------------------------------------------------------------- running


def serve(retriever: Retriever, settings: ServerSettings, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `ready` is told the address.

    Raises:
        ValueError: the address is taken, or not of this machine.
    """
    with _listen(settings) as listening:
        address = _address(listening)
        _Server(_config(retriever, settings), lambda: ready(address)).run(sockets=[listening])


@contextmanager
def running(retriever: Retriever, settings: ServerSettings) -> Iterator[str]:
    """A server in a thread of this process, for as long as the block lasts; gives its address.

    Raises:
        ValueError: the address is taken, or not of this machine.
    """
    with _listen(settings) as listening:
        started = threading.Event()
        server = _Server(_config(retriever, settings), started.set)
        thread = threading.Thread(target=server.run, args=([listening],), name="search-server", daemon=True)
        thread.start()
        if not started.wait(_START_S):
            raise RuntimeError(f"the corpus server did not start within {_START_S:g} s")
        try:
            yield _address(listening)
        finally:
            server.should_exit = True
            thread.join(_START_S)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


def _config(retriever: Retriever, settings: ServerSettings) -> uvicorn.Config:
    return uvicorn.Config(
        make_app(retriever, settings),
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=4096,
        timeout_graceful_shutdown=5,
    )


def _listen(settings: ServerSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listening = socket.create_server((settings.host, settings.port), family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise ValueError(
                f"port {settings.port} of {settings.host} is taken by another program; give another --port, "
                "or --port 0 for a free one"
            ) from None
        where = f"{settings.host}:{settings.port}"
        raise ValueError(f"cannot listen on {where}: {error}; check --host and --port") from None
    listening.setsockopt(
        socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
    )  # asyncio would not, and answers wait 40 ms
    return listening


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
