"""Ways through MiniWoB++ pages of buttons, fields and lists."""

from __future__ import annotations

import re

from envs.policies import call
from envs.web.miniwob_pages import Seen, Way, click, fill, part


def buttons(first: str) -> Way:
    """Press the buttons that the first line names, in its order."""
    seen = Seen(first)
    names = seen.quoted() or re.findall(r"button ([A-Z]+)", seen.wanted) or [seen.of("button")[0].name]
    for name in names:
        seen = Seen((yield click(seen.named(name, "button"))))


def checkboxes(first: str) -> Way:
    """Tick the boxes that are listed."""
    seen = Seen(first)
    names = part(r"Select (.*) and click", seen.wanted).split(", ")
    for name in names:
        if name != "nothing":
            seen = Seen((yield click(seen.named(name, "checkbox"))))
    yield click(seen.named("Submit", "button"))


def option(first: str) -> Way:
    """Choose a radio button."""
    seen = Seen(first)
    seen = Seen((yield click(seen.named(part(r"Select (.*) and click", seen.wanted), "radio"))))
    yield click(seen.named("Submit", "button"))


def choose(first: str) -> Way:
    """Choose from a list."""
    seen = Seen(first)
    box = seen.of("combobox")[0]
    wanted = part(r"Select (.*) from the list", seen.wanted)
    seen = Seen((yield call("select", element=box.number, option=wanted)))
    yield click(seen.named("Submit", "button"))


def texts(first: str) -> Way:
    """Write what is quoted into every field, the last text into those that remain; then press the last button.

    A question that comes up in between is declined.
    """
    seen = Seen(first)
    given = seen.quoted()
    for at in range(len(seen.of("textbox"))):
        seen = Seen((yield fill(seen.of("textbox")[at], given[min(at, len(given) - 1)])))
        if seen.has("Cancel", "button"):
            seen = Seen((yield click(seen.named("Cancel", "button"))))
    for at, box in enumerate(seen.of("textbox")):
        if not box.value:
            seen = Seen((yield fill(box, given[min(at, len(given) - 1)])))
    yield click(seen.of("button")[-1])


def cased(first: str) -> Way:
    """Write a text in upper or lower case."""
    seen = Seen(first)
    (text,) = seen.quoted()
    yield fill(seen.of("textbox")[0], text.upper() if "upper" in seen.wanted else text.lower())
    yield click(seen.named("Submit"))


def date(first: str) -> Way:
    """Fill a date field."""
    seen = Seen(first)
    month, day, year = part(r"Enter (\S+) as", seen.wanted).split("/")
    yield fill(seen.of("textbox")[0], f"{year}-{month}-{day}")
    yield click(seen.named("Submit"))


def time(first: str) -> Way:
    """Fill a time field."""
    seen = Seen(first)
    hour, minute = re.findall(r"\d+", part(r"Enter (.*) as the time", seen.wanted))
    late = "PM" in seen.wanted and int(hour) < 12
    early = "AM" in seen.wanted and int(hour) == 12
    yield fill(seen.of("textbox")[0], f"{(int(hour) + 12 * late) % (12 if early else 24):02d}:{minute}")
    yield click(seen.named("Submit"))


def copy(first: str) -> Way:
    """Copy a text from one field into another."""
    seen = Seen(first)
    boxes = seen.of("textbox")
    order = re.search(r"the (\d)\w\w text area", seen.wanted)
    full = [box for box in boxes if box.value]
    source = full[int(order[1]) - 1] if order else full[0]
    yield fill(next(box for box in boxes if not box.value), source.value)
    yield click(seen.named("Submit"))


def last_word(first: str) -> Way:
    """Write the last word of a long text."""
    seen = Seen(first)
    while not seen.has("Submit"):  # the text takes more than is shown at once
        seen = Seen((yield call("scroll", direction="down")))
        if "scroll up for more" in seen.text:
            break
    text = re.split(r'\n?\[\d+\] textbox "" = ""', "\n".join(seen.lines))[0]
    yield fill(seen.of("textbox")[-1], text.rstrip().removesuffix('"').split()[-1])
    yield click(seen.named("Submit"))


def nth_word(first: str) -> Way:
    """Write the n-th word of a paragraph."""
    seen = Seen(first)
    at = int(part(r"the (\d+)\w\w word", seen.wanted))
    words = " ".join(item.name for item in seen.of("clickable")).split()
    yield fill(seen.of("textbox")[0], words[at - 1].strip(".,?!"))
    yield click(seen.named("Submit"))


def focus(first: str) -> Way:
    """Click into a field."""
    seen = Seen(first)
    order = re.search(r"(\d)\w\w", seen.wanted)
    yield click(seen.of("textbox")[int(order[1]) - 1 if order else 0])


def sequence(first: str) -> Way:
    """Choose a radio button or checkbox by its place, fill a field by its place, submit."""
    seen = Seen(first)
    box = re.search(r"(\d)\w\w (radio|check)", seen.wanted)
    field = re.search(r'number "(\d+)" into the (\d)\w\w textbox', seen.wanted)
    if box:
        yield click(seen.of("radio", "checkbox")[int(box[1]) - 1])
    if field:
        yield fill(seen.of("textbox")[int(field[2]) - 1], field[1])
    yield click(seen.named("Submit", "button"))


def guess(first: str) -> Way:
    """Find a number by halving."""
    seen, low, high = Seen(first), 0, 9
    for _ in range(5):
        middle = (low + high) // 2
        seen = Seen((yield fill(seen.of("textbox")[0], str(middle))))
        seen = Seen((yield click(seen.named("Submit"))))
        text = " ".join(seen.lines[1:])
        low, high = (middle + 1, high) if "higher" in text else (low, middle - 1)


def generate(first: str) -> Way:
    """Generate numbers until one fits."""
    seen = Seen(first)
    for _ in range(40):
        seen = Seen((yield click(seen.named("Generate"))))
        if _fits(seen):
            yield click(seen.named("Submit"))
            return


def _fits(seen: Seen) -> bool:
    shown = int(seen.of("clickable")[0].name)
    if "even" in seen.wanted or "odd" in seen.wanted:
        return shown % 2 == ("odd" in seen.wanted)
    limit = int(part(r"than (-?\d+)", seen.wanted))
    return shown < limit if "less" in seen.wanted else shown > limit


def arithmetic(first: str) -> Way:
    """Compute a sum, difference or product, or solve for x."""
    seen = Seen(first)
    text = next(
        item.name
        for item in seen.of("clickable")
        if re.search(r"[-+x*]", item.name) and any(c.isdigit() for c in item.name)
    )
    yield fill(seen.of("textbox")[0], str(solved(text)))
    yield click(seen.named("Submit"))


def solved(text: str) -> int:
    """`8 + 8 =` or `8 - x = 85`."""
    left, _, right = text.partition("=")
    a, sign, b = left.split()
    if not right.strip():
        x, y = int(a), int(b)
        return x + y if sign == "+" else x - y if sign == "-" else x * y
    total = int(right)
    if a == "x":
        return total - int(b) if sign == "+" else total + int(b)
    return total - int(a) if sign == "+" else int(a) - total


def odd_or_even(first: str) -> Way:
    """Mark each number."""
    seen = Seen(first)
    items = seen.items
    for at, item in enumerate(items):
        if item.role == "clickable" and re.fullmatch(r"-?\d+", item.name):
            yield click(items[at - 1] if int(item.name) % 2 else items[at + 1])
    yield click(seen.named("Submit"))


def spinner(first: str) -> Way:
    """Fill a spinner."""
    seen = Seen(first)
    yield fill(seen.of("textbox")[0], part(r"Select (-?\d+) with", seen.wanted))
    yield click(seen.named("Submit"))


def autocomplete(first: str) -> Way:
    """Type a beginning, then take the item that fits."""
    seen = Seen(first)
    starts = part(r'starts with " ?([^"]*?) ?"', seen.wanted)
    ends = re.search(r'ends with " ?([^"]*?) ?"', seen.wanted)
    yield click(seen.of("textbox")[0])
    seen = Seen((yield fill(seen.of("textbox")[0], starts)))
    for _ in range(3):
        found = [i for i in seen.of("clickable", "menuitem", "option") if i.name.startswith(starts)]
        found = [i for i in found if not ends or i.name.endswith(ends[1])]
        if found:
            seen = Seen((yield click(found[0])))
            seen = Seen((yield call("press", element=seen.of("textbox")[0].number, key="Escape")))
            break
        seen = Seen((yield call("press", element=seen.of("textbox")[0].number, key="ArrowDown")))
    yield click(seen.named("Submit"))


def films(first: str) -> Way:
    """Fill a search for films whose fields stand in any order."""
    seen = Seen(first)
    genre, who, year = re.findall(r"Search for (.*) movies directed by (.*) from year (\d+)", seen.wanted)[0]
    label = ""
    for item in seen.items:
        if item.role == "textbox":
            text = (
                year
                if re.search("year|date|released", label, re.I)
                else genre
                if re.search("genre", label, re.I)
                else who
            )
            yield fill(item, text)
        elif item.role == "clickable":
            label = item.name
    yield click(seen.items[-1])


def blocks(first: str) -> Way:
    """Count blocks."""
    seen = Seen(first)
    count = sum(item.name == "addition-block" for item in seen.of("clickable"))
    yield fill(seen.of("textbox")[0], str(count))
    yield click(seen.named("Submit"))


def letters(first: str) -> Way:
    """Type letters that are drawn one by one."""
    seen = Seen(first)
    yield fill(seen.of("textbox")[0], "".join(item.name for item in seen.of("clickable")))
    yield click(seen.named("Submit"))
