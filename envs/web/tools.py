"""What the agent's tools show: the open page as text, a window of lines at a time."""

from __future__ import annotations

from envs.web.browser import HOME_LINES, MAX_CHARS, OVERLAP, View

NOT_SHOWN = "(nothing to show)"


def page_text(view: View, top: int) -> str:
    """Address, title, tabs, and the page's lines from `top` on, as many as fit."""
    head = [f"page: {view.page.title or '(no title)'}", f"address: {view.url}"]
    if len(view.tabs) > 1:
        names = (f"{'*' if i == view.active else ''}{i} {name[:60]}" for i, name in enumerate(view.tabs))
        head.append(f"tabs: {' | '.join(names)}")
    lines = view.page.lines
    shown = window(view, top)
    head.append(f"lines {top + 1} to {top + shown} of {len(lines)}{_hint(top, shown, len(lines))}")
    return "\n".join([*head, "", *(lines[top : top + shown] or [NOT_SHOWN])])


def window(view: View, top: int) -> int:
    """How many lines from `top` on are shown at once."""
    count = chars = 0
    for line in view.page.lines[top : top + HOME_LINES]:
        chars += len(line) + 1
        if chars > MAX_CHARS and count:
            break
        count += 1
    return count


def scrolled(view: View, top: int, down: bool) -> int:
    """The first line that is shown after scrolling by a window less an overlap."""
    if not down:
        return max(0, top - HOME_LINES + OVERLAP)
    shown = window(view, top)
    if top + shown >= len(view.page.lines):
        return top
    return top + max(1, shown - OVERLAP)


def _hint(top: int, shown: int, total: int) -> str:
    ways = [way for way, there in (("up", top > 0), ("down", top + shown < total)) if there]
    return f"; scroll {' or '.join(ways)} for more" if ways else ""
