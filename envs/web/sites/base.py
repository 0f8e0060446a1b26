"""What the sites share: sessions, forms, pages from templates, the map from an application to an episode's world."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from sqlalchemy import Column, Connection, Integer, MetaData, String, Table, func, insert, select, update

from envs.web.world import MAX_SESSIONS, Row, World

MAX_FORM_BYTES = 64 * 1024
MAX_FIELD_CHARS = 10_000
COOKIE = "session"


def account_tables(metadata: MetaData) -> None:
    """The tables `users` and `sessions`, which every site has."""
    Table(
        "users",
        metadata,
        Column("id", Integer, primary_key=True),
        Column("name", String, nullable=False),
        Column("password", String, nullable=False),
    )
    Table(
        "sessions",
        metadata,
        Column("id", Integer, primary_key=True),
        Column("token", String, nullable=False),
        Column("user_id", Integer),
    )


@dataclass(frozen=True, slots=True)
class Call:
    """One request as a page handler sees it."""

    world: World
    db: Connection
    session: int
    user: Row | None
    query: Mapping[str, str]
    form: Mapping[str, str]

    def all(self, statement: Any) -> list[Row]:
        """The rows of a query."""
        return [dict(row) for row in self.db.execute(statement).mappings()]

    def one(self, statement: Any) -> Row:
        """The first row of a query.

        Raises:
            NotFound: there is none.
        """
        rows = self.all(statement)
        if not rows:
            raise NotFound
        return rows[0]

    def table(self, name: str) -> Table:
        """A table by name."""
        return self.world.metadata.tables[name]


class NotFound(Exception):
    """There is no such page."""


class LoginNeeded(Exception):
    """Only people who are logged in may do this."""


Handler = Callable[..., Response]


class SiteApp:
    """Registers pages on a FastAPI application that has no other routes: no schema, no documentation."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
        self.get("/login")(lambda call: self.page(call, "login.html", error=""))
        self.post("/login")(self._login)
        self.post("/logout")(_logout)

    def get(self, path: str) -> Callable[[Handler], Handler]:
        """Register a page that changes nothing."""
        return self._route(path, "GET")

    def post(self, path: str) -> Callable[[Handler], Handler]:
        """Register what a form does."""
        return self._route(path, "POST")

    def _route(self, path: str, method: str) -> Callable[[Handler], Handler]:
        def register(handler: Handler) -> Handler:
            async def endpoint(request: Request) -> Response:
                return await self._answer(request, handler)

            self.app.add_api_route(path, endpoint, methods=[method], response_model=None)
            return handler

        return register

    async def _answer(self, request: Request, handler: Handler) -> Response:
        world: World = request.scope["world"]
        form = await _form(request)
        if form is None:
            return HTMLResponse("<title>Too large</title><p>The form is too large.</p>", status_code=413)
        with world.transaction() as db:
            session, user, token = _session(world, db, request.cookies.get(COOKIE, ""))
            query = {k: v[:MAX_FIELD_CHARS] for k, v in request.query_params.items()}
            call = Call(world=world, db=db, session=session, user=user, query=query, form=form)
            response = self._handle(call, handler, request.path_params)
        if token:
            response.set_cookie(COOKIE, token, httponly=True, samesite="strict")
        return response

    def _handle(self, call: Call, handler: Handler, path: Mapping[str, Any]) -> Response:
        try:
            return handler(call, **path)
        except NotFound:
            return self.page(
                call, "message.html", status=404, heading="Not found", text="There is no such page."
            )
        except LoginNeeded:
            return self.page(call, "login.html", status=403, error="Please log in first.")

    def page(self, call: Call, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """A page from a template; text is escaped by the template engine."""
        folder = "" if template in ("login.html", "message.html") else f"{self.name}/"
        html = (
            _templates()
            .get_template(folder + template)
            .render(site=self.name, user=call.user, call=call, **values)
        )
        return HTMLResponse(html, status_code=status, headers={"cache-control": "no-store"})

    def _login(self, call: Call) -> Response:
        users = call.table("users")
        found = call.all(select(users).where(users.c.name == call.form.get("name", "")))
        if not found or found[0]["password"] != call.form.get("password", ""):
            return self.page(call, "login.html", error="Name or password is wrong.")
        sessions = call.table("sessions")
        call.db.execute(update(sessions).where(sessions.c.id == call.session).values(user_id=found[0]["id"]))
        return see("/")


def _logout(call: Call) -> Response:
    sessions = call.table("sessions")
    call.db.execute(update(sessions).where(sessions.c.id == call.session).values(user_id=None))
    return see("/")


def see(path: str) -> RedirectResponse:
    """Send the browser to a page of the site after a form has done its work."""
    return RedirectResponse(path, status_code=303)


def needs_user(call: Call) -> Row:
    """Who is logged in.

    Raises:
        LoginNeeded: nobody is.
    """
    if call.user is None:
        raise LoginNeeded
    return call.user


def _session(world: World, db: Connection, token: str) -> tuple[int, Row | None, str]:
    """Number of the session, its user, and a token to set if it is new."""
    sessions, users = world.metadata.tables["sessions"], world.metadata.tables["users"]
    row = db.execute(select(sessions).where(sessions.c.token == token)).mappings().first() if token else None
    if row is not None:
        user = db.execute(select(users).where(users.c.id == row["user_id"])).mappings().first()
        return int(row["id"]), dict(user) if user is not None else None, ""
    number = int(db.execute(select(func.count()).select_from(sessions)).scalar_one()) + 1
    if number > MAX_SESSIONS:
        return 0, None, ""
    return number, None, open_session(world, db, number, None)


def open_session(world: World, db: Connection, number: int, user_id: int | None) -> str:
    """Begin session `number` and return its token."""
    token = world.token(number)
    db.execute(insert(world.metadata.tables["sessions"]).values(id=number, token=token, user_id=user_id))
    return token


async def _form(request: Request) -> dict[str, str] | None:
    """The fields of a form, empty for other requests; None when it is larger than `MAX_FORM_BYTES`."""
    if request.method != "POST":
        return {}
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            return None
    pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=None)
    return {key: value.replace("\r\n", "\n")[:MAX_FIELD_CHARS] for key, value in pairs}


@cache
def _templates() -> Environment:
    folder = Path(__file__).parent / "templates"
    loader = FileSystemLoader(folder)
    return Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, auto_reload=False, trim_blocks=True
    )


ASGI = Callable[[Any, Any, Any], Awaitable[None]]


def bind(app: ASGI, world: World) -> ASGI:
    """The application as it answers for one world."""

    async def bound(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "world": world}, receive, send)

    return bound


def number(text: str | None, default: int = 0) -> int:
    """A whole number of at most nine digits from a form or an address; `default` for everything else."""
    value = (text or "").strip()
    return int(value) if value.isascii() and value.isdigit() and len(value) <= 9 else default
