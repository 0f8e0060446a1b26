"""Worlds and goals of the issue tracker."""

from __future__ import annotations

from random import Random

from envs.web.plans import Change, Draw, Plan, SiteSpec, Step, Way, credentials, log_in, users
from envs.web.sites import tracker
from envs.web.sites.words import Words
from envs.web.world import Row, Rows


def fill(rng: Random, words: Words, level: int) -> Rows:
    """One project of six issues at level 0; two or three projects and up to sixty issues above."""
    people = users(rng, words, 4)
    names = [words.name() for _ in range((1, 3, 2, 3)[level])]
    projects = [{"id": i, "name": name} for i, name in enumerate(names, 1)]
    issues = []
    for key in range(1, (6, 18, 45, 60)[level] + 1):
        issues.append(
            {
                "id": key,
                "project_id": rng.choice(projects)["id"],
                "title": words.phrase(3),
                "body": words.phrase(6),
                "state": "open" if level == 0 or rng.random() < 0.7 else "closed",
                "label": rng.choice(tracker.LABELS),
                "priority": rng.choice(tracker.PRIORITIES[:2]),
                "milestone": rng.choice(tracker.MILESTONES[:2]),
                "assignee_id": rng.randrange(0, 5) if level < 3 else rng.randrange(1, 4),
                "author_id": rng.randrange(1, 5),
                "opened": f"2024-{rng.randrange(1, 6):02d}-{rng.randrange(1, 29):02d}",
            }
        )
    comments = [
        {
            "id": key,
            "issue_id": rng.choice(issues)["id"],
            "author_id": rng.randrange(1, 5),
            "body": words.phrase(4),
            "created_at": "2024-06-01T08:00:00",
        }
        for key in range(1, 7)
    ]
    return {"users": people, "projects": projects, "issues": issues, "comments": comments}


# ------------------------------------------------------------------------------------------------- ways


def _open(project: Row) -> tuple[Step, ...]:
    return (("click", "link", "Projects"), ("click", "link", project["name"]))


def _filtered(project: Row, label: str, assignee: str = "", state: str = "open") -> tuple[Step, ...]:
    steps: list[Step] = [
        *_open(project),
        ("select", "combobox", "State", state),
        ("select", "combobox", "Label", label),
    ]
    if assignee:
        steps.append(("select", "combobox", "Assigned to", assignee))
    return (*steps, ("click", "button", "Filter"))


def _set(values: dict[str, str]) -> tuple[Step, ...]:
    """Change fields of the issue that is open: names of comboboxes and options."""
    picked = tuple(("select", "combobox", name, option) for name, option in values.items())
    return (*picked, ("click", "button", "Save"))


def _comment(text: str) -> tuple[Step, ...]:
    return (("fill", "textbox", "Comment", text), ("click", "button", "Send"))


def _said(issue: Row, author: int, text: str) -> Change:
    return Change("add", "comments", {"issue_id": issue["id"], "author_id": author, "body": text})


# ------------------------------------------------------------------------------------------------ plans


def close_one(draw: Draw) -> Plan:
    """Level 0: close an issue that is in view."""
    project = draw.rows["projects"][0]
    issue, other = draw.rng.sample(draw.rows["issues"], 2)

    def way(what: Row, *more: Step, changes: tuple[Change, ...] = ()) -> Way:
        steps = (("click", "link", what["title"]), ("click", "button", "Close issue"), *more)
        return Way(steps=steps, changes=(Change("set", "issues", {"state": "closed"}, what["id"]), *changes))

    back = ("click", "link", project["name"])
    return Plan(
        text=f"Close the issue '{issue['title']}'.",
        start="/project/1",
        user=1,
        gold=way(issue),
        misses={
            "other issue": way(other),
            "one more": Way(
                steps=(*way(issue).steps, back, *way(other).steps),
                changes=way(issue).changes + way(other).changes,
            ),
            "comment only": Way(
                steps=(("click", "link", issue["title"]), *_comment("closed")),
                changes=(_said(issue, 1, "closed"),),
            ),
        },
    )


def open_one(draw: Draw) -> Plan:
    """Level 1: open an issue with a priority and an assignee."""
    user, person = draw.rows["users"][0], draw.rng.choice(draw.rows["users"][1:])
    project, other = draw.rng.sample(draw.rows["projects"], 2)
    title, priority = draw.words.phrase(3), draw.rng.choice(tracker.PRIORITIES[2:])
    label = draw.rng.choice(tracker.LABELS[1:])

    def way(where: Row, how: str, who: Row | None) -> Way:
        fields = {"Label": label, **({} if how == "normal" else {"Priority": how})}
        if who is not None:
            fields["Assigned to"] = who["name"]
        picked = tuple(("select", "combobox", name, option) for name, option in fields.items())
        form: tuple[Step, ...] = (
            ("fill", "textbox", "Title", title),
            *picked,
            ("click", "button", "Open issue"),
        )
        row = {
            "project_id": where["id"],
            "title": title,
            "body": "",
            "state": "open",
            "label": label,
            "priority": how,
            "milestone": "none",
            "assignee_id": who["id"] if who is not None else 0,
            "author_id": user["id"],
            "opened": "2024-06-15",
        }
        steps = (*log_in(user), *_open(where), ("click", "link", "New issue"), *form)
        return Way(steps=steps, changes=(Change("add", "issues", row),))

    return Plan(
        text=f"{credentials(user)} Log in and open a new issue in the project {project['name']}: title '{title}', "
        f"label {label}, priority {priority}, assigned to {person['name']}.",
        gold=way(project, priority, person),
        misses={
            "other project": way(other, priority, person),
            "default priority": way(project, "normal", person),
            "nobody": way(project, priority, None),
        },
    )


def oldest(draw: Draw) -> Plan | None:
    """Level 2: of the open issues with a label, the one that was opened first: assign it, say something, rank it."""
    user, project = draw.rows["users"][0], draw.rng.choice(draw.rows["projects"])
    label = draw.rng.choice(tracker.LABELS)
    every = sorted(draw.some("issues", project_id=project["id"], label=label), key=lambda i: str(i["opened"]))
    live = [issue for issue in every if issue["state"] == "open"]
    if (
        not 3 <= len(live) <= len(every) <= tracker.PAGE
        or every[0]["state"] == "open"
        or live[0]["opened"] == live[1]["opened"]
    ):
        return None
    if live[0]["id"] == min(issue["id"] for issue in live):
        return None  # the smallest number would do
    person = draw.rng.choice([p for p in draw.rows["users"] if p["id"] != live[0]["assignee_id"]])
    text = draw.words.phrase(4)

    def way(issue: Row, state: str = "open", said: str = text) -> Way:
        steps = (*_filtered(project, label, state=state), ("click", "link", issue["title"]))
        fields = {"Assigned to": person["name"], "Priority": "urgent"}
        changed = Change("set", "issues", {"assignee_id": person["id"], "priority": "urgent"}, issue["id"])
        words = _comment(said) if said else ()
        spoken = (_said(issue, user["id"], said),) if said else ()
        return Way(steps=(*log_in(user), *steps, *_set(fields), *words), changes=(changed, *spoken))

    return Plan(
        text=f"{credentials(user)} Log in. Among the open issues of the project {project['name']} with the label "
        f"{label}, find the one that was opened first (by date). Set its priority to urgent, assign it to "
        f"{person['name']}, and comment '{text}' on it.",
        gold=way(live[0]),
        misses={
            "second oldest": way(live[1]),
            "closed one": way(every[0], state="closed"),
            "no comment": way(live[0], said=""),
        },
    )


def move_all(draw: Draw) -> Plan | None:
    """Level 3: every open issue with a label and an assignee gets another milestone and another assignee."""
    user, project = draw.rows["users"][0], draw.rng.choice(draw.rows["projects"])
    label, person = draw.rng.choice(tracker.LABELS), draw.rng.choice(draw.rows["users"][:3])
    where = {"project_id": project["id"], "label": label, "assignee_id": person["id"]}
    live = draw.some("issues", state="open", **where)
    others = [
        i for i in draw.some("issues", project_id=project["id"], label=label, state="open") if i not in live
    ]
    if not 2 <= len(live) <= 3 or not others:
        return None
    heir = draw.rng.choice([p for p in draw.rows["users"] if p["id"] != person["id"]])
    if any(o["assignee_id"] == heir["id"] for o in others[:1]):
        return None

    names = {p["id"]: p["name"] for p in draw.rows["users"]}

    def way(issues: list[Row], fields: dict[str, str], values: Row) -> Way:
        steps: list[Step] = list(log_in(user))
        for issue in issues:
            steps += [
                *_filtered(project, label, names[issue["assignee_id"]]),
                ("click", "link", issue["title"]),
                *_set(fields),
            ]
        return Way(
            steps=tuple(steps),
            changes=tuple(Change("set", "issues", values, issue["id"]) for issue in issues),
        )

    fields = {"Milestone": "autumn", "Assigned to": heir["name"]}
    values = {"milestone": "autumn", "assignee_id": heir["id"]}
    return Plan(
        text=f"{credentials(user)} Log in. In the project {project['name']}, move every open issue that has the label "
        f"{label} and is assigned to {person['name']} to the milestone autumn, and assign it to {heir['name']}.",
        gold=way(live, fields, values),
        misses={
            "one forgotten": way(live[:-1], fields, values),
            "one too many": way([*live, others[0]], fields, values),
            "milestone only": way(live, {"Milestone": "autumn"}, {"milestone": "autumn"}),
        },
    )


SPEC = SiteSpec(
    name="tracker",
    metadata=tracker.METADATA,
    fill=fill,
    app=tracker.app,
    plans={0: (close_one,), 1: (open_one,), 2: (oldest,), 3: (move_all,)},
)
