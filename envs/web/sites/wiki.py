"""The wiki: pages in categories, a history of every page. Everything but reading needs a user."""

from __future__ import annotations

from functools import cache

from fastapi import FastAPI
from fastapi.responses import Response
from sqlalchemy import Column, Integer, MetaData, String, Table, func, insert, or_, select, update

from envs.web.sites.base import Call, SiteApp, account_tables, needs_user, number, see
from envs.web.world import Row

METADATA = MetaData()
account_tables(METADATA)
PAGES = Table(
    "pages",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("title", String, nullable=False),
    Column("category", String, nullable=False),
    Column("body", String, nullable=False),
)
REVISIONS = Table(
    "revisions",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("title", String, nullable=False),
    Column("editor_id", Integer, nullable=False),
    Column("summary", String, nullable=False),
    Column("created_at", String, nullable=False),
)
USERS = METADATA.tables["users"]
CATEGORIES = ("towns", "rivers", "people", "ships")
MAX_TITLE = 100
MAX_FOUND = 20
_site = SiteApp("wiki")


@cache
def app() -> FastAPI:
    """The application; `envs.web.sites.base.bind` gives it a world."""
    return _site.app


def tidy(body: str) -> str:
    """A page's text as it is stored: no space at the end of a line, no empty lines at the end."""
    return "\n".join(line.rstrip() for line in body.replace("\r\n", "\n").split("\n")).strip("\n")


@_site.get("/")
def home(call: Call) -> Response:
    """Categories and the latest pages."""
    latest = call.all(select(PAGES).order_by(PAGES.c.id.desc()).limit(6))
    return _site.page(call, "home.html", categories=CATEGORIES, latest=latest)


@_site.get("/category/{name}")
def category(call: Call, name: str) -> Response:
    """The pages of a category."""
    pages = call.all(select(PAGES).where(PAGES.c.category == name).order_by(PAGES.c.title))
    return _site.page(call, "list.html", heading=f"Category {name}"[:60], pages=pages, words="")


@_site.get("/search")
def search(call: Call) -> Response:
    """Pages whose title or text contains some words."""
    words = call.query.get("words", "").strip().lower()
    rules = [func.lower(column).contains(words, autoescape=True) for column in (PAGES.c.title, PAGES.c.body)]
    found = (
        call.all(select(PAGES).where(or_(*rules)).order_by(PAGES.c.title).limit(MAX_FOUND)) if words else []
    )
    return _site.page(call, "list.html", heading="Search", pages=found, words=words)


def _page(call: Call, key: str) -> Row:
    return call.one(select(PAGES).where(PAGES.c.id == number(key)))


@_site.get("/page/{key}")
def read(call: Call, key: str) -> Response:
    """One page."""
    return _site.page(call, "page.html", page=_page(call, key))


@_site.get("/page/{key}/history")
def history(call: Call, key: str) -> Response:
    """Who changed a page."""
    page = _page(call, key)
    joined = select(REVISIONS, USERS.c.name).join(USERS, USERS.c.id == REVISIONS.c.editor_id)
    rows = call.all(joined.where(REVISIONS.c.title == page["title"]).order_by(REVISIONS.c.id))
    return _site.page(call, "history.html", page=page, revisions=rows)


@_site.get("/page/{key}/edit")
def edit(call: Call, key: str) -> Response:
    """The form that changes a page."""
    needs_user(call)
    return _show_form(call, _page(call, key), "")


@_site.get("/new")
def new(call: Call) -> Response:
    """The form that makes a page."""
    needs_user(call)
    return _show_form(call, {"id": 0, "title": "", "category": CATEGORIES[0], "body": ""}, "")


def _show_form(call: Call, page: Row, error: str) -> Response:
    return _site.page(call, "edit.html", page=page, categories=CATEGORIES, error=error)


@_site.post("/page/{key}/edit")
def save(call: Call, key: str) -> Response:
    """Change a page, or make one (key 0)."""
    user = needs_user(call)
    old = {"id": 0, "title": ""} if key == "0" else _page(call, key)
    wanted = {
        "title": call.form.get("title", "").strip(),
        "category": call.form.get("category", ""),
        "body": tidy(call.form.get("body", "")),
    }
    taken = call.all(select(PAGES).where(PAGES.c.title == wanted["title"], PAGES.c.id != old["id"]))
    if not 0 < len(wanted["title"]) <= MAX_TITLE or taken or wanted["category"] not in CATEGORIES:
        error = f"A page needs a title that no other page has, of at most {MAX_TITLE} characters."
        return _show_form(call, {**wanted, "id": old["id"]}, error)
    page_id = old["id"]
    if page_id:
        call.db.execute(update(PAGES).where(PAGES.c.id == page_id).values(**wanted))
        moved = REVISIONS.c.title == old["title"]
        call.db.execute(update(REVISIONS).where(moved).values(title=wanted["title"]))
    else:
        (page_id,) = call.db.execute(insert(PAGES).values(**wanted)).inserted_primary_key or (0,)
    call.db.execute(
        insert(REVISIONS).values(
            title=wanted["title"],
            editor_id=user["id"],
            summary=call.form.get("summary", "").strip(),
            created_at=call.world.now,
        )
    )
    return see(f"/page/{page_id}")
