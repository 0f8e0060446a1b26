"""The server's HTTP and WebSocket side: routes, and that every request ends in an answer of the protocol.

POST   /v1/leases                     open one; then every request carries it
POST   /v1/leases/renew               DELETE /v1/leases
POST   /v1/info, /v1/tasks            what the environment declares; its tasks
POST   /v1/envs                       numbered: a new episode
POST   /v1/envs/ID/VERB               step snapshot (numbered), interrupt
POST   /v1/snapshots/ID/restore       numbered
GET    /v1/results/NUMBER             wait further for a numbered request
DELETE /v1/{envs,snapshots}/ID
WebSocket /v1/socket                  all of these, each as a message
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from fastapi import FastAPI, Request, Response

from envs.remote import operations
from envs.remote.operations import Operation, answered
from envs.remote.service import EnvService
from envs.remote.sessions import Lease
from envs.remote.wire import unpack
from sandbox.remote import incoming, wire
from sandbox.remote.answers import answer_of, refuse, settled
from sandbox.remote.once import Answer
from sandbox.remote.refusals import Refused
from sandbox.remote.tunnel import add_tunnel

_STILL_RUNNING = 202
_Handler = Callable[[EnvService, Request], Awaitable[Answer]]


def make_app(service: EnvService) -> FastAPI:
    """The application over a service."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)

    def route(method: str, path: str, handle: _Handler) -> None:
        async def handled(request: Request) -> Response:
            answer = await handle(service, request)
            return Response(b"".join(answer.pieces), answer.status, media_type=wire.MEDIA_TYPE)

        async def endpoint(request: Request) -> Response:
            return await answer_of(lambda: handled(request))

        app.add_api_route(path, endpoint, methods=[method], response_model=None)

    route("POST", "/v1/leases", _open_lease)
    route("POST", "/v1/leases/renew", _renew)
    route("DELETE", "/v1/leases", _end_lease)
    route("POST", "/v1/info", _look(operations.info))
    route("POST", "/v1/tasks", _look(operations.tasks))
    route("POST", "/v1/envs", _reset)
    route("POST", "/v1/envs/{id}/interrupt", _look(operations.interrupt))
    route("POST", "/v1/envs/{id}/{verb}", _on_env)
    route("POST", "/v1/snapshots/{id}/restore", _restore)
    route("GET", "/v1/results/{number}", _result)
    route("DELETE", "/v1/{kind}/{id}", _delete)
    add_tunnel(app, service.settings)
    app.add_exception_handler(404, _no_such_route)
    app.add_exception_handler(405, _no_such_route)
    return app


async def _no_such_route(request: Request, error: Exception) -> Response:
    del request, error
    return refuse(Refused("malformed", "there is no such request in this protocol"))


async def _open_lease(service: EnvService, request: Request) -> Answer:
    client = incoming.client_of(request, service.settings)
    if service.draining:
        raise Refused("draining", "the server is shutting down", retry_after_s=5)
    settings, lease = service.settings, service.leases.open(client)
    fields = {
        "backend": f"env:{settings.env}"[:512],
        "enforced": [],
        "missing": {},
        "lease": lease.id,
        "lease_s": settings.lease_s,
        "max_body_bytes": settings.max_body_bytes,
        "max_timeout_s": settings.deadline_s,
    }
    return Answer(200, wire.encode(wire.LeaseHead, fields))


async def _renew(service: EnvService, request: Request) -> Answer:
    _lease(service, request)
    return _done()


async def _end_lease(service: EnvService, request: Request) -> Answer:
    await service.end_lease(_lease(service, request))
    return _done()


async def _reset(service: EnvService, request: Request) -> Answer:
    return await _numbered(service, request, "", operations.reset)


async def _on_env(service: EnvService, request: Request) -> Answer:
    verb = request.path_params["verb"]
    if verb not in operations.NUMBERED:
        raise Refused("malformed", "there is no such request in this protocol")
    return await _numbered(service, request, request.path_params["id"], operations.NUMBERED[verb])


async def _restore(service: EnvService, request: Request) -> Answer:
    return await _numbered(service, request, request.path_params["id"], operations.restore)


async def _delete(service: EnvService, request: Request) -> Answer:
    lease, kind, id = _lease(service, request), request.path_params["kind"], request.path_params["id"]
    ways = {"envs": service.close, "snapshots": service.release}
    if kind not in ways:
        raise Refused("malformed", "there is no such request in this protocol")
    await ways[kind](lease, id)
    return _done()


async def _result(service: EnvService, request: Request) -> Answer:
    lease = _lease(service, request)
    return await _wait(service, lease.results.task(incoming.number(request.path_params["number"])))


def _look(operation: Operation) -> _Handler:
    """A request that may be repeated."""

    async def handle(service: EnvService, request: Request) -> Answer:
        lease = _lease(service, request)
        body = await _body(service, request)
        return await settled(
            lambda: answered(operation(service, lease, request.path_params.get("id", ""), unpack(body)))
        )

    return handle


async def _numbered(service: EnvService, request: Request, id: str, operation: Operation) -> Answer:
    lease, number = _lease(service, request), incoming.number_of(request)
    body = await _body(service, request)
    new = not lease.results.knows(number)
    task = lease.results.start(
        number,
        incoming.digest_of(request, body),
        lambda: settled(lambda: answered(operation(service, lease, id, unpack(body)))),
    )
    if new:
        service.work.add(task)
        task.add_done_callback(service.work.discard)
    return await _wait(service, task)


async def _body(service: EnvService, request: Request) -> bytearray:
    length = incoming.length_of(request, service.settings.max_body_bytes)
    await service.buffers.take(length, service.settings.poll_s)
    try:
        return await incoming.body_of(request, length, service.settings.body_s)
    finally:
        service.buffers.give(length)


async def _wait(service: EnvService, task: asyncio.Task[Answer]) -> Answer:
    finished, _ = await asyncio.wait({task}, timeout=service.settings.poll_s)
    return task.result() if finished else Answer(_STILL_RUNNING, wire.encode(wire.DoneHead, {}))


def _done() -> Answer:
    return Answer(200, wire.encode(wire.DoneHead, {}))


def _lease(service: EnvService, request: Request) -> Lease:
    client = incoming.client_of(request, service.settings)
    return service.leases.find(request.headers.get(wire.LEASE_HEADER, ""), client)
