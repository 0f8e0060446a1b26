"""Loads pages of one origin over HTTP: redirects under the origin lock, cookies, bounded bodies."""

from __future__ import annotations

import codecs
import html as html_
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie

import httpx

from envs.web.origin import resolve
from tools.errors import ToolError

MAX_REDIRECTS = 10
MAX_BODY_BYTES = 1 << 20
MAX_COOKIES = 50
TIMEOUT_S = 10.0
_MOVED = (301, 302, 303, 307, 308)

Transport = Callable[[], httpx.AsyncBaseTransport]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A page, where it was found in the end, and the cookies from then on."""

    url: str
    html: str
    cookies: Mapping[str, str] = field(repr=False)


async def load(
    make: Transport, method: str, url: str, data: bytes | None, cookies: Mapping[str, str]
) -> Loaded:
    """Ask for a page and follow its redirects.

    Raises:
        ToolError: a redirect leads out of the origin, there are too many, or nobody answers.
    """
    jar = dict(cookies)
    async with make() as transport:
        for _ in range(MAX_REDIRECTS):
            response, body = await _exchange(transport, method, url, data, jar)
            _keep(jar, response.headers.get_list("set-cookie"))
            location = response.headers.get("location")
            if location is None or response.status_code not in _MOVED:
                return Loaded(url=url, html=_as_html(response, body), cookies=jar)
            url = resolve(url, location)
            if response.status_code not in (307, 308):
                method, data = "GET", None
    raise ToolError(f"the page redirects more than {MAX_REDIRECTS} times")


async def _exchange(
    transport: httpx.AsyncBaseTransport, method: str, url: str, data: bytes | None, jar: Mapping[str, str]
) -> tuple[httpx.Response, bytes]:
    headers = {"accept": "text/html"}
    if data is not None:
        headers["content-type"] = "application/x-www-form-urlencoded"
    if jar:
        headers["cookie"] = "; ".join(f"{name}={value}" for name, value in sorted(jar.items()))
    timeout = {"timeout": httpx.Timeout(TIMEOUT_S).as_dict()}
    try:
        request = httpx.Request(method, url, headers=headers, content=data, extensions=timeout)
        response = await transport.handle_async_request(request)
        return response, await _read(response)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ToolError(f"the page could not be loaded: {type(error).__name__}") from error


async def _read(response: httpx.Response) -> bytes:
    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            break
    await response.aclose()
    return body[:MAX_BODY_BYTES]


def _keep(jar: dict[str, str], lines: list[str]) -> None:
    """Take cookies into a jar; all are for the one origin."""
    for line in lines:
        try:
            found = SimpleCookie(line)
        except CookieError:
            continue
        for name, morsel in found.items():
            jar.pop(name, None)
            if morsel["max-age"] != "0" and len(jar) < MAX_COOKIES:
                jar[name] = morsel.value


def _as_html(response: httpx.Response, body: bytes) -> str:
    text = body.decode(_charset(response), "replace")
    kind = response.headers.get("content-type", "text/html").partition(";")[0].strip().lower()
    if kind in ("text/html", "application/xhtml+xml"):
        return text
    if kind.startswith("text/"):
        return f"<pre>{html_.escape(text)}</pre>"
    return f"<p>(a file of type {html_.escape(kind[:100])}: not shown)</p>"


def _charset(response: httpx.Response) -> str:
    """The page's charset; UTF-8 where Python knows no such text encoding."""
    name = response.charset_encoding or "utf-8"
    try:
        return name if codecs.lookup(name)._is_text_encoding else "utf-8"
    except (LookupError, ValueError):
        return "utf-8"
