"""Where an episode takes place: a browser, what it looks at, and the judge of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Protocol

import httpx

from envs.errors import TaskError
from envs.types import Reward, Split, Task
from envs.web.browser import Browser
from envs.web.grading import judge
from envs.web.loop import shared
from envs.web.plans import SiteSpec, start_of
from envs.web.sites.base import COOKIE, bind, open_session
from envs.web.tasks import place_of, plan_of
from envs.web.text_browser import TextBrowser, TextState
from envs.web.world import World, WorldState, filled

BrowserKind = Literal["text", "chromium"]


class Stage(Protocol):
    """One episode's place."""

    browser: Browser

    def judge(self) -> Reward:
        """The verdict on the place as it stands."""
        ...

    def over(self) -> bool:
        """Whether the place itself has ended the episode."""
        ...

    def copy(self) -> Any | None:
        """What `make_stage` continues from; None where a stage can only be replayed."""
        ...

    def digest(self) -> str:
        """A name for the state on the server's side."""
        ...

    def close(self) -> None:
        """Take it down; safe to call twice."""
        ...


@dataclass(frozen=True, slots=True)
class SiteState:
    """A copy of a site's stage."""

    world: WorldState
    browser: TextState


@lru_cache(maxsize=128)
def _first_state(spec: SiteSpec, seed: int, level: int, words: Split) -> WorldState:
    """The database that every episode of a world starts from."""
    return filled(spec.metadata, start_of(spec, seed, level, words).rows)


class SiteStage:
    """One of the three sites, with a world of its own."""

    def __init__(
        self, task: Task, kind: BrowserKind, state: SiteState | None = None, pictures: str = ""
    ) -> None:
        self._task, self._place, self._plan = task, place_of(task), plan_of(task)
        spec = self._place.spec
        self._world = World(
            spec.metadata,
            _first_state(spec, *self._place.key) if state is None else state.world,
            now=self._place.now,
            secret=self._place.secret,
        )
        self._app = bind(spec.app(), self._world)
        cookies = self._first_session() if state is None else {}
        self.browser: Browser
        if kind == "text":
            text = TextBrowser(lambda: httpx.ASGITransport(app=self._app), cookies=cookies)
            self.browser = text
            if state is not None:
                text.load(state.browser, spec.address + "/")
        else:
            from envs.web.chromium import ChromiumBrowser

            self.browser = ChromiumBrowser(self._app, now=self._place.now, cookies=cookies, pictures=pictures)
        if state is None:
            self.browser.open(spec.address + self._plan.start)

    def _first_session(self) -> dict[str, str]:
        """A session for a user who is logged in from the start."""
        if not self._plan.user:
            return {}
        with self._world.transaction() as db:
            return {COOKIE: open_session(self._world, db, 1, self._plan.user)}

    def judge(self) -> Reward:
        """Compare the server's rows with what the goal makes of the first ones."""
        return judge(self._place.rows, self._plan.gold.changes, self._world.rows())

    def over(self) -> bool:
        """A site never ends an episode."""
        return False

    def copy(self) -> SiteState | None:
        """Database and browser; None for the real browser, which is replayed."""
        browser = self.browser.copy()
        return SiteState(self._world.copy(), browser) if isinstance(browser, TextState) else None

    def digest(self) -> str:
        """A name for the database's content."""
        return self._world.digest()

    def close(self) -> None:
        """Close the browser, forget the world."""
        self.browser.close()
        self._world.close()


def make_stage(task: Task, kind: BrowserKind, state: Any | None = None, pictures: str = "") -> Stage:
    """The place of a task, new or continued from a copy.

    Raises:
        TaskError: the task's data are malformed, or need the other browser.
    """
    shared()
    if task.data.get("source") != "miniwob":
        return SiteStage(task, kind, state, pictures)
    if kind != "chromium":
        raise TaskError("a MiniWoB task is played in a real browser: make('web-v1', browser='chromium')")
    from envs.web.miniwob import MiniwobStage

    return MiniwobStage(task, pictures)
