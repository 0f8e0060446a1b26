"""The environment `web-v1`: a goal on a web site, reached through a browser, judged by the server's state."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from envs.base import PolicySpec
from envs.snapshots import canonical_json
from envs.tool_env import ToolEnv
from envs.types import Reward, Split, Task
from envs.web.extra import needs_web
from tools.errors import ToolError
from tools.schema import tool
from tools.types import Message

if TYPE_CHECKING:
    from envs.web.browser import View
    from envs.web.stages import BrowserKind, Stage

MAX_MESSAGE_CHARS = 2000
MAX_MESSAGES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """A copy of the episode."""

    stage: Any
    top: int
    seen: tuple[str, str, int]
    messages: tuple[str, ...]


class WebEnv(ToolEnv):
    """Reach a goal on a web site; reward 1 if the server's rows are what the goal makes of them, and nothing more.

    `browser="text"` (the default) is the light browser in process; `"chromium"` is the real one.
    """

    id: ClassVar[str] = "web-v1"
    levels: ClassVar[tuple[int, ...]] = (0, 1, 2, 3)
    max_turns: int = 50
    tool_timeout_s: ClassVar[float] = 60.0

    _stage: Stage | None = None
    _top: int = 0
    _messages: tuple[str, ...] = ()
    _seen: tuple[str, str, int] = ("", "", 0)
    """Address, title and tab of the page that was shown last."""

    def __init__(self, *, browser: BrowserKind = "text", pictures: str = "", **options: Any) -> None:
        """Choose a browser; see `Env` for the other options.

        `pictures` is a folder that gets a screenshot of every view, for people; only Chromium makes them.
        """
        if browser not in ("text", "chromium"):
            raise ValueError(f"browser is 'text' or 'chromium', got {browser!r}")
        super().__init__(**options)
        self._kind, self._pictures = browser, pictures

    @classmethod
    def tasks(cls, split: Split = "train", n: int = 1, seed: int = 0, **options: Any) -> list[Task]:
        """`n` generated tasks.

        Options: `level` (0 to 3), `site` (`shop`, `tracker` or `wiki`; all in turn without). With `site="miniwob"`
        there is no level but a `name`: of a page, or all in turn.
        """
        known = {"site", "name"} if options.get("site") == "miniwob" else {"level", "site"}
        unknown = sorted(set(options) - known)
        if unknown:
            raise ValueError(
                f"the options of web-v1 tasks are {' and '.join(sorted(known))}, got {unknown[0]!r}"
            )
        if "name" in known:
            from envs.web import miniwob

            return miniwob.generate(split, n, seed, name=options.get("name", ""))
        with needs_web():
            from envs.web.tasks import generate
        return generate(split, n, seed, **options)

    @classmethod
    def policies(cls) -> dict[str, PolicySpec]:
        """Scripted policies by name: gold, sloppy, noop and attacks."""
        with needs_web():
            from envs.web.policies import policies
        return policies()

    @classmethod
    def split_keys(cls, task: Task) -> Mapping[str, str]:
        """The world, and the prompt with its numbers masked."""
        masked = "".join("0" if c.isdigit() else c for c in canonical_json(list(task.prompt)))
        return {"world": canonical_json([dict(task.data), task.seed]), "masked prompt": masked}

    # ----------------------------------------------------------------------------------------------- tools

    @tool
    def click(self, element: int) -> str:
        """Click an element of the page by its number."""
        self._open.browser.click(element)
        return self._shown()

    @tool
    def fill(self, element: int, text: str) -> str:
        """Replace the text of a textbox."""
        self._open.browser.fill(element, text)
        return self._shown()

    @tool
    def select(self, element: int, option: str) -> str:
        """Choose an option of a combobox by its text."""
        self._open.browser.select(element, option)
        return self._shown()

    @tool
    def press(self, element: int, key: str) -> str:
        """Press a key, such as Enter, in an element."""
        self._open.browser.press(element, key)
        return self._shown()

    @tool
    def scroll(self, direction: Literal["up", "down"]) -> str:
        """Show the lines of the page further up or down."""
        from envs.web.tools import scrolled

        self._top = scrolled(self._open.browser.view(), self._top, direction == "down")
        return self._shown()

    @tool
    def goto(self, url: str) -> str:
        """Open an address of this site, such as /login."""
        self._open.browser.goto(url)
        return self._shown(new=True)

    @tool
    def back(self) -> str:
        """Go back to the page before this one."""
        self._open.browser.back()
        return self._shown(new=True)

    @tool
    def tab(self, action: Literal["new", "switch", "close"], index: int = 0) -> str:
        """Open a new tab, or switch to or close the tab with this index."""
        self._open.browser.tab(action, index)
        return self._shown(new=True)

    @tool
    def send_message(self, text: str) -> str:
        """Tell the user something; it changes nothing on the site."""
        if len(self._messages) >= MAX_MESSAGES:
            raise ToolError(f"at most {MAX_MESSAGES} messages can be sent")
        self._messages += (text[:MAX_MESSAGE_CHARS],)
        return "message sent"

    @tool(name="finish")
    def end(self) -> str:
        """Finish: the goal is reached, or cannot be."""
        self.finish()
        return "finished"

    # ------------------------------------------------------------------------------------------- the episode

    def setup(self, task: Task) -> None:
        """Build the task's world and open its first page."""
        self._start(task, None)
        self._top, self._messages = 0, ()

    def _start(self, task: Task, state: Any) -> None:
        with needs_web():
            from envs.web.stages import make_stage
        self._stage = make_stage(task, self._kind, state, self._pictures)

    def prompt(self) -> list[Message]:
        """The task's messages; the first page stands at the end of the last one."""
        *before, last = self.task.prompt
        return [*before, {**last, "content": f"{last['content']}\n\n{self._shown(new=True)}"}]

    def grade(self) -> Reward:
        """Judge the server's state."""
        return self._open.judge()

    def teardown(self) -> None:
        """Close the browser and forget the world."""
        if self._stage is not None:
            self._stage.close()
            self._stage = None

    def state_key(self) -> str:
        """Names the server's state and what is open and typed in the browser."""
        view = self._open.browser.view()
        text = canonical_json(
            [self._open.digest(), view.url, list(view.tabs), view.active, list(view.page.lines)]
        )
        return hashlib.blake2b(f"{self.task.id}{text}{self._top}".encode(), digest_size=16).hexdigest()

    def copy_state(self) -> _State | None:
        """Server and browser; None for the real browser, whose episodes are replayed."""
        state = self._open.copy()
        return (
            None
            if state is None
            else _State(stage=state, top=self._top, seen=self._seen, messages=self._messages)
        )

    def load_state(self, state: _State) -> None:
        """Continue from `copy_state`."""
        self._start(self.task, state.stage)
        self._top, self._seen, self._messages = state.top, state.seen, state.messages

    @property
    def _open(self) -> Stage:
        if self._stage is None:
            raise RuntimeError("the web stage is used before setup")
        return self._stage

    def _shown(self, *, new: bool = False) -> str:
        """The page in front as text; a page that is not the one before is shown from its top."""
        from envs.web.tools import page_text

        view = self._open.browser.view()
        self._top = (
            0 if new or self._place(view) != self._seen else min(self._top, max(0, len(view.page.lines) - 1))
        )
        self._seen = self._place(view)
        if self._open.over():
            self.finish()
        return page_text(view, self._top)

    @staticmethod
    def _place(view: View) -> tuple[str, str, int]:
        return view.url, view.page.title, view.active
