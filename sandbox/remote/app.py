"""The server's HTTP side: routes, and that every request ends in an answer of the protocol.

GET    /v1/server                     what the backend enforces
POST   /v1/leases                     open one; then every request carries it
POST   /v1/leases/renew               DELETE /v1/leases
POST   /v1/sandboxes                  numbered
POST   /v1/sandboxes/ID/VERB          exec fork restore shells snapshots write (numbered), read posture
POST   /v1/shells/ID/run              numbered
GET    /v1/results/NUMBER             wait further for a numbered request
DELETE /v1/{sandboxes,shells,snapshots}/ID
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable

from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from sandbox.remote import incoming, operations, wire
from sandbox.remote.answers import answer_of, refuse, settled
from sandbox.remote.incoming import Buffers
from sandbox.remote.leases import Lease
from sandbox.remote.once import Answer
from sandbox.remote.operations import Operation
from sandbox.remote.refusals import Refused
from sandbox.remote.service import Service

_STILL_RUNNING = 202


def make_app(service: Service) -> FastAPI:
    """The application over a service."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)

    def route(method: str, path: str, handle: Callable[[Service, Request], Awaitable[Response]]) -> None:
        async def endpoint(request: Request) -> Response:
            return await answer_of(lambda: handle(service, request))

        app.add_api_route(path, endpoint, methods=[method], response_model=None)

    route("GET", "/v1/server", _server)
    route("POST", "/v1/leases", _open_lease)
    route("POST", "/v1/leases/renew", _renew)
    route("DELETE", "/v1/leases", _end_lease)
    route("POST", "/v1/sandboxes", _create)
    route("POST", "/v1/sandboxes/{id}/{verb}", _on_sandbox)
    route("POST", "/v1/shells/{id}/run", _on_shell)
    route("POST", "/v1/snapshots/{id}/held", _on_snapshot)
    route("GET", "/v1/results/{number}", _result)
    route("DELETE", "/v1/{kind}/{id}", _delete)
    app.add_exception_handler(404, _no_such_route)
    app.add_exception_handler(405, _no_such_route)
    return app


async def _no_such_route(request: Request, error: Exception) -> Response:
    del request, error
    return refuse(Refused("malformed", "there is no such request in this protocol"))


async def _server(service: Service, request: Request) -> Response:
    incoming.client_of(request, service.settings)
    return _response(Answer(200, wire.encode(wire.ReportHead, _report(service))))


async def _open_lease(service: Service, request: Request) -> Response:
    client = incoming.client_of(request, service.settings)
    service.require_open()
    settings, lease = service.settings, service.leases.open(client)
    fields = {
        **_report(service),
        "lease": lease.id,
        "lease_s": settings.lease_s,
        "max_body_bytes": settings.max_body_bytes,
        "max_timeout_s": settings.max_limits.timeout_s,
    }
    return _response(Answer(200, wire.encode(wire.LeaseHead, fields)))


async def _renew(service: Service, request: Request) -> Response:
    _lease(service, request)
    return _response(operations.done())


async def _end_lease(service: Service, request: Request) -> Response:
    await service.end_lease(_lease(service, request))
    return _response(operations.done())


async def _create(service: Service, request: Request) -> Response:
    return await _numbered(service, request, "", operations.create)


async def _on_sandbox(service: Service, request: Request) -> Response:
    id, verb = request.path_params["id"], request.path_params["verb"]
    if verb in operations.NUMBERED:
        return await _numbered(service, request, id, operations.NUMBERED[verb])
    if verb in operations.LOOKS:
        return await _look(service, request, id, operations.LOOKS[verb])
    raise Refused("malformed", "there is no such request in this protocol")


async def _on_shell(service: Service, request: Request) -> Response:
    return await _numbered(service, request, request.path_params["id"], operations.command)


async def _on_snapshot(service: Service, request: Request) -> Response:
    return await _look(service, request, request.path_params["id"], operations.held_by)


async def _delete(service: Service, request: Request) -> Response:
    lease, id = _lease(service, request), request.path_params["id"]
    ways = {
        "sandboxes": service.close_sandbox,
        "shells": service.close_shell,
        "snapshots": service.release_snapshot,
    }
    if request.path_params["kind"] not in ways:
        raise Refused("malformed", "there is no such request in this protocol")
    await ways[request.path_params["kind"]](lease, id)
    return _response(operations.done())


async def _result(service: Service, request: Request) -> Response:
    lease = _lease(service, request)
    return await _wait(service, lease.results.task(incoming.number(request.path_params["number"])))


async def _numbered(service: Service, request: Request, id: str, operation: Operation) -> Response:
    lease, number = _lease(service, request), incoming.number_of(request)
    if not lease.results.knows(number):
        service.require_open()
    length = incoming.length_of(request, service.settings.max_body_bytes)
    buffers, owed = service.buffers, length
    await buffers.take(length, service.settings.poll_s)
    try:
        body = await incoming.body_of(request, length, service.settings.body_s)
        digest, new = incoming.digest_of(request, body), not lease.results.knows(number)
        task = lease.results.start(
            number, digest, lambda: settled(lambda: operation(service, lease, id, body))
        )
        if new:  # the work takes over the room
            task.add_done_callback(lambda _: buffers.give(length))
            owed = 0
            _track(service, task)
    finally:
        buffers.give(owed)
    return await _wait(service, task)


async def _look(service: Service, request: Request, id: str, operation: Operation) -> Response:
    lease = _lease(service, request)
    service.require_open()
    length = incoming.length_of(request, wire.MAX_HEAD_BYTES)
    body = await incoming.body_of(request, length, service.settings.body_s)
    task = asyncio.get_running_loop().create_task(settled(lambda: operation(service, lease, id, body)))
    _track(service, task)
    return _response(await asyncio.shield(task), service.buffers)


def _track(service: Service, task: asyncio.Task[Answer]) -> None:
    service.work.add(task)
    task.add_done_callback(service.work.discard)


async def _wait(service: Service, task: asyncio.Task[Answer]) -> Response:
    finished, _ = await asyncio.wait({task}, timeout=service.settings.poll_s)
    if not finished:
        return _response(Answer(_STILL_RUNNING, wire.encode(wire.DoneHead, {})))
    return _response(task.result())


def _lease(service: Service, request: Request) -> Lease:
    client = incoming.client_of(request, service.settings)
    return service.leases.find(request.headers.get(wire.LEASE_HEADER, ""), client)


def _report(service: Service) -> dict[str, object]:
    report = service.report
    return {
        "backend": report.backend,
        "enforced": sorted(report.enforced),
        "missing": dict(report.missing),
    }


class _Sent(StreamingResponse):
    """A response in chunks that gives its room back when it was sent, or cannot be."""

    def __init__(self, answer: Answer, buffers: Buffers, headers: dict[str, str]) -> None:
        super().__init__(iter(wire.chunks(answer.pieces)), answer.status, headers, wire.MEDIA_TYPE)
        self._give = functools.partial(buffers.give, answer.room)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._give()


def _response(answer: Answer, buffers: Buffers | None = None) -> Response:
    headers = {"content-length": str(answer.size)}
    if answer.retry_after_s:
        headers["retry-after"] = str(answer.retry_after_s)
    if buffers is not None and answer.room:
        return _Sent(answer, buffers, headers)
    return Response(b"".join(answer.pieces), answer.status, headers, wire.MEDIA_TYPE)
