"""Ways through MiniWoB++ pages of links, tabs, menus, mails and tables."""

from __future__ import annotations

import re
from calendar import month_name

from envs.policies import call
from envs.web.miniwob_pages import Item, Seen, Way, click, fill, part


def link(first: str) -> Way:
    """Click a word."""
    seen = Seen(first)
    yield click(seen.named(seen.quoted()[0]))


def hidden_link(first: str) -> Way:
    """Open tabs or sections until the word is there."""
    seen = Seen(first)
    (name,) = seen.quoted()
    for at in range(len(seen.of("tab"))):
        if seen.has(name, "clickable", "link"):
            break
        seen = Seen((yield click(seen.of("tab")[at])))
    yield click(seen.named(name, "clickable", "link"))


def section(first: str) -> Way:
    """Expand a section, then submit."""
    seen = Seen(first)
    seen = Seen((yield click(seen.of("tab")[0])))
    yield click(seen.named("Submit"))


def tab(first: str) -> Way:
    """Click a tab."""
    seen = Seen(first)
    yield click(seen.named(part(r"Click on (Tab #\d+)", seen.wanted), "tab"))


def dialog(first: str) -> Way:
    """Close a dialog, or press the button that is named."""
    seen = Seen(first)
    name = (seen.quoted() or ["x"])[0]
    yield click(seen.named("Close" if name == "x" else name, "button"))


def ascending(first: str) -> Way:
    """Click numbers in order."""
    seen = Seen(first)
    left = [
        int(item.name) for item in seen.of("clickable")
    ]  # the others are covered once the first is pressed
    while left:
        at = left.index(min(left))
        del left[at]
        seen = Seen((yield click(seen.of("clickable")[at])))


def ticket(first: str) -> Way:
    """Buy the cheapest, dearest, shortest or longest."""
    seen = Seen(first)
    durations = [item for item in seen.of("clickable") if re.fullmatch(r"\d+h \d+m", item.name)]
    offers = seen.of("button")
    by_cost = "cost" in seen.wanted
    values = [
        _cost(offer) if by_cost else _minutes(duration)
        for offer, duration in zip(offers, durations, strict=True)
    ]
    best = max if re.search("most expensive|longest", seen.wanted) else min
    yield click(offers[values.index(best(values))])


def _cost(item: Item) -> int:
    return int(part(r"\$(\d+)", item.name))


def _minutes(item: Item) -> int:
    hours, minutes = re.findall(r"\d+", item.name)
    return 60 * int(hours) + int(minutes)


def calendar(first: str) -> Way:
    """Choose a date: turn to its month, click its day."""
    seen = Seen(first)
    month, day, year = map(int, part(r"Select (\S+) as", seen.wanted).split("/"))
    seen = Seen((yield click(seen.of("textbox")[0])))
    for _ in range(14):
        shown = re.search(
            rf"({'|'.join(month_name[1:])})\W+(?:\[\d+\] \w+ \W*)?(\d{{4}})", "\n".join(seen.lines[1:])
        )
        if shown is None:
            break
        away = (year - int(shown[2])) * 12 + month - list(month_name).index(shown[1])
        if away == 0:
            break
        seen = Seen((yield click(seen.named("Next" if away > 0 else "Prev"))))
    seen = Seen((yield click(seen.named(str(day), "link"))))
    yield click(seen.named("Submit", "button"))


def mail(first: str) -> Way:
    """Find a mail by who sent it; star, delete, reply or forward it."""
    seen = Seen(first)
    text, names = seen.wanted, [item.name for item in seen.of("clickable")]
    people = sorted((text.find(name), name) for name in set(names) if name in text)
    sender = _sender(text) or people[0][1]
    seen = Seen((yield click(seen.named(sender))))
    if re.search(r"important|\bstar\b", text) and "reply" not in text:
        yield click(_like(seen, "star"))
    elif re.search(r"delete|trash", text):
        yield click(_like(seen, "trash"))
    elif re.search("forward|send|pass|give|resend", text, re.I) and "reply" not in text.lower():
        seen = Seen((yield click(_like(seen, "forward"))))
        yield fill(seen.of("textbox")[0], _receiver(text, sender))
        yield click(_like(seen, "send"))
    else:
        seen = Seen((yield click(_like(seen, "reply"))))
        yield fill(seen.of("textbox")[-1], part(r'"\s*([^"]*?)\s*"', text))
        yield click(_like(seen, "send"))


def _sender(text: str) -> str:
    for pattern in (r"email by (\w+)", r"mail by (\w+)", r"(\w+)'s? e?mail", r"from (\w+)"):
        if found := re.search(pattern, text):
            return found[1]
    return ""


def _receiver(text: str, sender: str) -> str:
    found = re.search(r"(?:\bto|[Ss]end|[Gg]ive) (\w+)(?: the|\s*\.?)", text.replace(sender, ""))
    if found is None:
        raise LookupError(text)
    return found[1]


def _like(seen: Seen, name: str) -> Item:
    for item in seen.items:
        if name in item.name.lower():
            return item
    raise LookupError(name)


def tree(first: str) -> Way:
    """Open folders until the name is there."""
    seen = Seen(first)
    (name,) = seen.quoted()
    for _ in range(40):
        shut = [item for item in seen.of("clickable") if "expandable-hitarea" in item.name]
        if seen.has(name) or not shut:
            break
        seen = Seen((yield click(shut[0])))
    yield click(seen.named(name))


def contact(first: str) -> Way:
    """Turn the pages of a contact book."""
    seen = Seen(first)
    who, what = re.findall(r"Find (\w+) in the contact book and click on their (.*?)\.", seen.wanted)[0]
    for _ in range(12):
        items = seen.items
        if seen.has(who):
            break
        seen = Seen((yield click(seen.named(">"))))
    items = seen.items
    label = {"address": "Address:", "phone number": "Phone:", "email": "Email:"}[what]
    yield click(items[[item.name for item in items].index(label) + 1])


def table(first: str) -> Way:
    """Copy values of a table into fields."""
    seen = Seen(first)
    cells = [item.name for item in seen.of("clickable")]
    values = dict(zip(cells[::2], cells[1::2], strict=False))
    asked = re.search(r"value of (.*) into", seen.wanted)
    labels = [asked[1]] if asked else re.findall(r"^(.+): \[\d+\] textbox", "\n".join(seen.lines), re.M)
    for label, box in zip(labels, seen.of("textbox"), strict=False):
        yield fill(box, values[label])
    yield click(seen.named("Submit"))


def results(first: str) -> Way:
    """Search, then click the n-th result, on whichever page it is."""
    seen = Seen(first)
    at = int(part(r"the (\d+)\w\w search result", seen.wanted))
    yield fill(seen.of("textbox")[0], seen.quoted()[0])
    seen = Seen((yield click(seen.named("Search", "button"))))
    per_page = len(_hits(seen))
    page = (at - 1) // per_page + 1
    if page > 1:
        seen = Seen((yield click(seen.named(str(page)))))
    yield click(_hits(seen)[(at - 1) % per_page])


def _hits(seen: Seen) -> list[Item]:
    return [item for item in seen.of("link") if not re.fullmatch(r"\d+|[<>]", item.name)]


def posts(first: str) -> Way:
    """Press a button below posts of one user."""
    seen = Seen(first)
    who = part(r"(@\w+)", seen.wanted)
    what = seen.quoted()[0].lower()
    number = re.search(r"button on (\d+) posts?", seen.wanted)
    left = int(number[1]) if number else len(seen.items)
    at = -1
    for _ in range(60):
        items = seen.items
        spots = [i for i, item in enumerate(items) if item.name == who and i > at]
        if not spots or left == 0:
            break
        at, left = spots[0], left - 1
        seen = Seen((yield click(next(item for item in items[at:] if item.name.lower() == what))))
    if "Submit" in seen.wanted:
        while not seen.has("Submit"):
            seen = Seen((yield call("scroll", direction="down")))
        yield click(seen.named("Submit"))
