"""The issue tracker: projects, issues, comments. Everything but looking needs a user."""

from __future__ import annotations

from collections import Counter
from functools import cache
from math import ceil
from typing import Any

from fastapi import FastAPI
from fastapi.responses import Response
from sqlalchemy import Column, Integer, MetaData, String, Table, and_, insert, select, update

from envs.web.sites.base import Call, SiteApp, account_tables, needs_user, number, see
from envs.web.world import Row

METADATA = MetaData()
account_tables(METADATA)
PROJECTS = Table(
    "projects",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", String, nullable=False),
)
ISSUES = Table(
    "issues",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("project_id", Integer, nullable=False),
    Column("title", String, nullable=False),
    Column("body", String, nullable=False),
    Column("state", String, nullable=False),
    Column("label", String, nullable=False),
    Column("priority", String, nullable=False),
    Column("milestone", String, nullable=False),
    Column("assignee_id", Integer, nullable=False),
    Column("author_id", Integer, nullable=False),
    Column("opened", String, nullable=False),
)
COMMENTS = Table(
    "comments",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("issue_id", Integer, nullable=False),
    Column("author_id", Integer, nullable=False),
    Column("body", String, nullable=False),
    Column("created_at", String, nullable=False),
)
USERS = METADATA.tables["users"]
PRIORITIES = ("low", "normal", "high", "urgent")
LABELS = ("bug", "idea", "question", "task")
MILESTONES = ("none", "spring", "summer", "autumn")
STATES = ("open", "closed")
PAGE = 8
MAX_TITLE = 200
NOBODY = "nobody"
_site = SiteApp("tracker")


@cache
def app() -> FastAPI:
    """The application; `envs.web.sites.base.bind` gives it a world."""
    return _site.app


def _people(call: Call) -> dict[int, str]:
    return {0: NOBODY, **{row["id"]: row["name"] for row in call.all(select(USERS).order_by(USERS.c.id))}}


def _choices(call: Call) -> dict[str, Any]:
    return {
        "people": _people(call),
        "priorities": PRIORITIES,
        "labels": LABELS,
        "milestones": MILESTONES,
        "states": STATES,
    }


@_site.get("/")
def home(call: Call) -> Response:
    """The projects."""
    live = call.all(select(ISSUES.c.project_id, ISSUES.c.id).where(ISSUES.c.state == "open"))
    counts = Counter(row["project_id"] for row in live)
    return _site.page(
        call, "home.html", projects=call.all(select(PROJECTS).order_by(PROJECTS.c.id)), counts=counts
    )


def _project(call: Call, key: str) -> Row:
    return call.one(select(PROJECTS).where(PROJECTS.c.id == number(key)))


@_site.get("/project/{key}")
def project(call: Call, key: str) -> Response:
    """The issues of a project, newest number first, filtered by state, label and assignee."""
    found = _project(call, key)
    chosen = {name: call.query.get(name, "") for name in ("state", "label", "assignee")}
    rules = [ISSUES.c.project_id == found["id"]]
    if chosen["state"]:
        rules.append(ISSUES.c.state == chosen["state"])
    if chosen["label"]:
        rules.append(ISSUES.c.label == chosen["label"])
    if chosen["assignee"]:
        rules.append(ISSUES.c.assignee_id == number(chosen["assignee"], -1))
    issues = call.all(select(ISSUES).where(and_(*rules)).order_by(ISSUES.c.id.desc()))
    pages = max(1, ceil(len(issues) / PAGE))
    page = min(max(1, number(call.query.get("page"), 1)), pages)
    shown = issues[(page - 1) * PAGE : page * PAGE]
    return _site.page(
        call,
        "project.html",
        project=found,
        issues=shown,
        chosen=chosen,
        page=page,
        pages=pages,
        found=len(issues),
        **_choices(call),
    )


@_site.get("/project/{key}/new")
def new(call: Call, key: str) -> Response:
    """The form that opens an issue."""
    needs_user(call)
    return _site.page(call, "new.html", project=_project(call, key), error="", **_choices(call))


@_site.post("/project/{key}/new")
def create(call: Call, key: str) -> Response:
    """Open an issue; its author is who is logged in."""
    user, found = needs_user(call), _project(call, key)
    title = call.form.get("title", "").strip()
    values = _fields(call, {"label": LABELS[0], "priority": "normal", "milestone": "none", "assignee_id": 0})
    if not 0 < len(title) <= MAX_TITLE or values is None:
        error = f"An issue needs a title of at most {MAX_TITLE} characters."
        return _site.page(call, "new.html", project=found, error=error, **_choices(call))
    created = call.db.execute(
        insert(ISSUES).values(
            project_id=found["id"],
            title=title,
            body=call.form.get("body", "").strip(),
            state="open",
            author_id=user["id"],
            opened=call.world.now[:10],
            **values,
        )
    )
    (issue_id,) = created.inserted_primary_key or (0,)
    return see(f"/issue/{issue_id}")


def _fields(call: Call, before: Row) -> Row | None:
    """Label, priority, milestone and assignee from a form; None when one of them is unknown."""
    values = {key: call.form.get(key, before[key]) for key in ("label", "priority", "milestone")}
    assignee = number(call.form.get("assignee", str(before["assignee_id"])), -1)
    known = (
        values["label"] in LABELS
        and values["priority"] in PRIORITIES
        and values["milestone"] in MILESTONES
        and assignee in _people(call)
    )
    return {**values, "assignee_id": assignee} if known else None


@_site.get("/issue/{key}")
def issue(call: Call, key: str) -> Response:
    """One issue with its comments and forms."""
    return _show(call, call.one(select(ISSUES).where(ISSUES.c.id == number(key))), "")


def _show(call: Call, row: Row, error: str) -> Response:
    comments = call.all(select(COMMENTS).where(COMMENTS.c.issue_id == row["id"]).order_by(COMMENTS.c.id))
    named = _project(call, str(row["project_id"]))
    return _site.page(
        call, "issue.html", issue=row, project=named, comments=comments, error=error, **_choices(call)
    )


@_site.post("/issue/{key}")
def edit(call: Call, key: str) -> Response:
    """Change label, priority, milestone or assignee."""
    needs_user(call)
    row = call.one(select(ISSUES).where(ISSUES.c.id == number(key)))
    values = _fields(call, row)
    if values is None:
        return _show(call, row, "There is no such value.")
    call.db.execute(update(ISSUES).where(ISSUES.c.id == row["id"]).values(**values))
    return see(f"/issue/{row['id']}")


@_site.post("/issue/{key}/state")
def turn(call: Call, key: str) -> Response:
    """Close or reopen an issue."""
    needs_user(call)
    row = call.one(select(ISSUES).where(ISSUES.c.id == number(key)))
    wanted = call.form.get("state", "")
    if wanted not in STATES:
        return _show(call, row, "There is no such state.")
    call.db.execute(update(ISSUES).where(ISSUES.c.id == row["id"]).values(state=wanted))
    return see(f"/issue/{row['id']}")


@_site.post("/issue/{key}/comment")
def comment(call: Call, key: str) -> Response:
    """Write a comment in one's own name."""
    user = needs_user(call)
    row = call.one(select(ISSUES).where(ISSUES.c.id == number(key)))
    body = call.form.get("body", "").strip()
    if not body:
        return _show(call, row, "A comment needs a text.")
    call.db.execute(
        insert(COMMENTS).values(
            issue_id=row["id"], author_id=user["id"], body=body, created_at=call.world.now
        )
    )
    return see(f"/issue/{row['id']}")
