"""The boundary: whatever happens while a request is served becomes an answer with a code, never a traceback."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from starlette.responses import Response

from sandbox.remote import wire
from sandbox.remote.once import Answer
from sandbox.remote.refusals import MAX_MESSAGE, REFUSALS, Refused, code_of

logger = logging.getLogger(__name__)


async def settled(work: Callable[[], Awaitable[Answer]]) -> Answer:
    """What came of an operation, errors included."""
    try:
        return await work()
    except Exception as error:  # noqa: BLE001 - a backend runs inside; the client gets a code
        return _refusal(_refused(error))


async def answer_of(handle: Callable[[], Awaitable[Response]]) -> Response:
    """What a request is answered, errors included."""
    try:
        return await handle()
    except Exception as error:  # noqa: BLE001 - hostile bytes are read inside; the client gets a code
        return refuse(_refused(error))


def refuse(refused: Refused) -> Response:
    """The response that says no."""
    answer = _refusal(refused)
    headers = {"retry-after": str(refused.retry_after_s)} if refused.retry_after_s else {}
    return Response(b"".join(answer.pieces), answer.status, headers, wire.MEDIA_TYPE)


def _refusal(refused: Refused) -> Answer:
    message = refused.message.encode("utf-8", "replace").decode()[:MAX_MESSAGE]
    pieces = wire.encode(wire.RefusalHead, {"code": refused.code, "message": message})
    status = REFUSALS[refused.code].status
    return Answer(status, pieces, refused.retry_after_s, refused.started_nothing)


def _refused(error: Exception) -> Refused:
    if isinstance(error, Refused):
        return error
    if isinstance(error, wire.Malformed):
        return Refused("malformed", str(error))
    code = code_of(error)
    if code is not None:
        return Refused(code, str(error))
    logger.error("a request failed", exc_info=error)
    return Refused("internal", f"the server failed with {type(error).__name__}; its log says more")
