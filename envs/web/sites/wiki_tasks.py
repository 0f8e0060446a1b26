"""Worlds and goals of the wiki."""

from __future__ import annotations

from random import Random

from envs.web.plans import Change, Draw, Plan, SiteSpec, Step, Way, credentials, log_in, users
from envs.web.sites import wiki
from envs.web.sites.words import Words
from envs.web.world import Row, Rows

FACTS = {
    "towns": ("Mayor", "River", "Founded"),
    "rivers": ("Source", "Mouth", "Length"),
    "people": ("Born", "Trade", "Home"),
    "ships": ("Captain", "Port", "Built"),
}
_NUMBERS = ("Founded", "Length", "Born", "Built")


def fill(rng: Random, words: Words, level: int) -> Rows:
    """Five pages at level 0 and up to thirty-six above; names are shared between pages of a category."""
    people = users(rng, words, 3)
    shared = {name: [words.name() for _ in range(4)] for facts in FACTS.values() for name in facts}
    pages = []
    for key in range(1, (5, 12, 24, 36)[level] + 1):
        category = wiki.CATEGORIES[key % len(wiki.CATEGORIES)]
        facts = {name: _value(rng, name, shared) for name in FACTS[category]}
        lines = [
            words.phrase(5) + ".",
            *(f"{name}: {value}" for name, value in facts.items()),
            words.phrase(5) + ".",
        ]
        if level >= 2 and rng.random() < 0.4:
            lines.append(f"Seen by {rng.choice(shared[FACTS[category][0]])}.")
        pages.append({"id": key, "title": words.name(), "category": category, "body": "\n".join(lines)})
    revisions = [
        {
            "id": page["id"],
            "title": page["title"],
            "editor_id": rng.randrange(1, 4),
            "summary": "first version",
            "created_at": "2024-05-01T12:00:00",
        }
        for page in pages
    ]
    return {"users": people, "pages": pages, "revisions": revisions}


def _value(rng: Random, name: str, shared: dict[str, list[str]]) -> str:
    return str(rng.randrange(100, 2000)) if name in _NUMBERS else rng.choice(shared[name])


# ------------------------------------------------------------------------------------------------- ways


def _search(words: str) -> tuple[Step, ...]:
    return (
        ("click", "link", "Wiki"),
        ("fill", "textbox", "Search", words),
        ("press", "textbox", "Search", "Enter"),
    )


def _edited(
    page: Row, body: str, summary: str, title: str = ""
) -> tuple[tuple[Step, ...], tuple[Change, ...]]:
    """Edit the page that is open: the steps and the changes."""
    steps: list[Step] = [("click", "link", "Edit this page")]
    if title:
        steps.append(("fill", "textbox", "Title", title))
    if body != page["body"]:
        steps.append(("fill", "textbox", "Text", body))
    if summary:
        steps.append(("fill", "textbox", "Summary", summary))
    steps.append(("click", "button", "Save page"))
    new = title or page["title"]
    changes = [
        Change("set", "pages", {"title": new, "body": body}, page["id"]),
        Change("add", "revisions", {"title": new, "editor_id": 1, "summary": summary}),
    ]
    if title:
        changes.append(Change("set", "revisions", {"title": title}, page["id"]))
    return tuple(steps), tuple(changes)


def _line(page: Row, name: str) -> str:
    """The value that a page gives to a fact; empty when it has none."""
    for line in page["body"].split("\n"):
        if line.startswith(f"{name}: "):
            return str(line.removeprefix(f"{name}: "))
    return ""


def _with(page: Row, name: str, value: str) -> str:
    """A page's text with another value."""
    lines = [
        f"{name}: {value}" if line.startswith(f"{name}: ") else line for line in page["body"].split("\n")
    ]
    return "\n".join(lines)


# ------------------------------------------------------------------------------------------------ plans


def make_page(draw: Draw) -> Plan:
    """Level 0: make a page."""
    title, text = draw.words.name(), draw.words.phrase(4) + "."
    category, other = draw.rng.sample(wiki.CATEGORIES[1:], 2)

    def way(name: str, kind: str, body: str) -> Way:
        steps: list[Step] = [("click", "link", "New page"), ("fill", "textbox", "Title", name)]
        if kind != wiki.CATEGORIES[0]:
            steps.append(("select", "combobox", "Category", kind))
        steps += [("fill", "textbox", "Text", body), ("click", "button", "Save page")]
        page = {"title": name, "category": kind, "body": body}
        revision = {"title": name, "editor_id": 1, "summary": ""}
        return Way(
            steps=tuple(steps), changes=(Change("add", "pages", page), Change("add", "revisions", revision))
        )

    return Plan(
        text=f"Make a new page with the title {title} in the category {category}. Its text is: {text}",
        user=1,
        gold=way(title, category, text),
        misses={
            "default category": way(title, wiki.CATEGORIES[0], text),
            "other category": way(title, other, text),
            "title as text": way(title, category, title),
        },
    )


def change_fact(draw: Draw) -> Plan:
    """Level 1: change one line of a page and leave the others, with a summary."""
    user, (page, other) = draw.rows["users"][0], draw.rng.sample(draw.rows["pages"], 2)
    name = FACTS[page["category"]][0]
    value, summary = draw.words.name(), draw.words.phrase(2)

    def way(what: Row, body: str, said: str) -> Way:
        steps, changes = _edited(what, body, said)
        return Way(
            steps=(*log_in(user), *_search(what["title"]), ("click", "link", what["title"]), *steps),
            changes=changes,
        )

    body = _with(page, name, value)
    wrong = f"{other['body']}\n{name}: {value}"
    return Plan(
        text=f"{credentials(user)} Log in. On the page {page['title']}, change the value of '{name}' to {value} and "
        f"leave the rest of the text as it is. Give the summary '{summary}'.",
        gold=way(page, body, summary),
        misses={
            "only the new line": way(page, f"{name}: {value}", summary),
            "no summary": way(page, body, ""),
            "other page": way(other, wrong, summary),
        },
    )


def rename_found(draw: Draw) -> Plan | None:
    """Level 2: find the page with two values, rename it and add a line."""
    user, category = draw.rows["users"][0], draw.rng.choice(wiki.CATEGORIES)
    pages = draw.some("pages", category=category)
    page = draw.rng.choice(pages)
    one, two = [name for name in FACTS[category] if name not in _NUMBERS][:2]
    first, second = _line(page, one), _line(page, two)
    others = [p for p in pages if p is not page and _line(p, one) == first]
    if not others or any(_line(p, two) == second for p in others):
        return None
    title, line = draw.words.name(), f"Note: {draw.words.phrase(3)}"

    def way(what: Row, name: str, added: str) -> Way:
        body = f"{what['body']}\n{added}" if added else what["body"]
        steps, changes = _edited(what, body, "", name)
        found = (("click", "link", "Wiki"), ("click", "link", category), ("click", "link", what["title"]))
        return Way(steps=(*log_in(user), *found, *steps), changes=changes)

    return Plan(
        text=f"{credentials(user)} Log in. In the category {category} there is one page with '{one}: {first}' and "
        f"'{two}: {second}'. Rename it to {title}, and add the line '{line}' at the end of its text.",
        gold=way(page, title, line),
        misses={
            "other page": way(others[0], title, line),
            "not renamed": way(page, "", line),
            "no line": way(page, title, ""),
        },
    )


def replace_everywhere(draw: Draw) -> Plan | None:
    """Level 3: a value is replaced on every page that has it, and not where it only occurs."""
    user, category = draw.rows["users"][0], draw.rng.choice(wiki.CATEGORIES)
    name = next(fact for fact in FACTS[category] if fact not in _NUMBERS)
    pages = draw.some("pages", category=category)
    old = draw.rng.choice(sorted({_line(p, name) for p in pages}))
    having = [p for p in pages if _line(p, name) == old]
    seen = [p for p in pages if p not in having and old in p["body"]]
    if not 2 <= len(having) <= 4 or not seen:
        return None
    value, summary = draw.words.name(), draw.words.phrase(2)

    def way(which: list[Row], said: str, extra: Row | None = None) -> Way:
        steps: list[Step] = list(log_in(user))
        changes: list[Change] = []
        for page in [*which, *([extra] if extra else [])]:
            body = _with(page, name, value) if page is not extra else page["body"].replace(old, value)
            more, changed = _edited(page, body, said)
            steps += [
                ("click", "link", "Wiki"),
                ("click", "link", category),
                ("click", "link", page["title"]),
                *more,
            ]
            changes += changed
        return Way(steps=tuple(steps), changes=tuple(changes))

    return Plan(
        text=f"{credentials(user)} Log in. On every page of the category {category} where the line '{name}: {old}' "
        f"stands, replace it by '{name}: {value}', with the summary '{summary}'. Change nothing else, also where "
        f"{old} occurs in other lines.",
        gold=way(having, summary),
        misses={
            "one forgotten": way(having[:-1], summary),
            "one too many": way(having, summary, seen[0]),
            "no summary": way(having, ""),
        },
    )


SPEC = SiteSpec(
    name="wiki",
    metadata=wiki.METADATA,
    fill=fill,
    app=wiki.app,
    plans={0: (make_page,), 1: (change_fact,), 2: (rename_found,), 3: (replace_everywhere,)},
)
