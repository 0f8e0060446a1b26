"""MiniWoB++ pages as tasks: served from the installed wheel, seeded, judged by the page's raw reward."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from envs.errors import TaskError
from envs.rewards import reward
from envs.tasksets import task_id, world_seeds
from envs.types import Reward, Split, Task
from envs.web.browser import Browser
from envs.web.chromium import ChromiumBrowser
from envs.web.extra import missing
from envs.web.miniwob_tasks import EXCLUDED, GOLDS
from envs.web.static_site import StaticSite
from tools.errors import ToolError
from tools.types import Message

ADDRESS = "http://miniwob.test/miniwob"
NOW = "2024-06-15T09:00:00"
SYSTEM = (
    "You use a small web page. It is shown as lines; what can be acted on has a number in brackets, such as [3] "
    "button. The first line says what is wanted. Do it with the tools; the episode ends by itself when the page has "
    "judged it."
)
FOREVER_MS = 2_000_000_000

_BEGIN = """([seed, forever]) => {
  Math.seedrandom(seed);
  core.EPISODE_MAX_TIME = forever;
  if (window.jQuery) jQuery.fx.off = true;
  core.startEpisodeReal();
  core.hideDisplay();
  const canvas = document.getElementById('click-canvas');
  if (canvas) canvas.style.display = 'none';
  window.__begun = true;
}"""
_VERDICT = "() => ({done: WOB_DONE_GLOBAL === true, raw: Number(WOB_RAW_REWARD_GLOBAL), n: WOB_EPISODE_ID})"


def folder() -> Path:
    """Where the wheel keeps its pages.

    Raises:
        EnvError: the wheel is not installed.
    """
    spec = importlib.util.find_spec("miniwob")
    if spec is None or not spec.submodule_search_locations:
        raise missing("miniwob")
    return Path(next(iter(spec.submodule_search_locations)), "html")


def generate(split: Split, n: int, seed: int, *, name: str = "") -> list[Task]:
    """`n` tasks: every page in turn, or one page; each with a seed of its own.

    Raises:
        ValueError: there is no such page, or it is one of those left out.
    """
    if name and name not in GOLDS:
        raise ValueError(
            EXCLUDED.get(name) or f"a MiniWoB page is one of {', '.join(sorted(GOLDS))}, got {name!r}"
        )
    names = [name] if name else sorted(GOLDS)
    return [_task(names[i % len(names)], each, split) for i, each in enumerate(world_seeds(split, n, seed))]


def _task(name: str, seed: int, split: Split) -> Task:
    data = {"source": "miniwob", "name": name, "seed": seed}
    prompt: tuple[Message, ...] = (
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": f"Do what the page says. (page {name}, number {seed})"},
    )
    return Task(
        id=task_id("web-v1", prompt, data, None),
        env="web-v1",
        prompt=prompt,
        data=data,
        split=split,
        seed=seed % 2**31,
        metadata={"source": "miniwob", "name": name},
    )


class MiniwobStage:
    """One page. Reward 1 only if the raw reward of the first try on the first page load is the highest one."""

    def __init__(self, task: Task, pictures: str = "") -> None:
        name, seed = task.data.get("name"), task.data.get("seed")
        if name not in GOLDS or not isinstance(seed, int):
            raise TaskError(f"a MiniWoB task names a page and a seed, got {dict(task.data)!r:.200}")
        page = ChromiumBrowser(
            StaticSite(folder()),
            now=NOW,
            clickable=True,
            except_in="head, #query, #reward-display, #sync-task-cover",
            pictures=pictures,
        )
        self.browser: Browser = page
        self._page, self._url = page, f"{ADDRESS}/{name}.html"
        self._raw: float | None = None
        page.open(self._url)
        page.ask(_BEGIN, [str(seed), FOREVER_MS])

    def over(self) -> bool:
        """Whether the page has judged, or is no longer the one that was begun."""
        if self._raw is None:
            self._raw = self._look()
        return self._raw is not None

    def _look(self) -> float | None:
        """The raw reward; 0 for a page that was left, reloaded or broken, None for one that goes on."""
        try:
            begun = self._page.ask("() => window.__begun === true")
            verdict: dict[str, Any] = self._page.ask(_VERDICT) if begun is True else {}
        except ToolError:
            return 0.0
        if begun is not True:
            return 0.0
        return float(verdict["raw"]) if verdict["done"] and verdict["n"] == 1 else None

    def judge(self) -> Reward:
        """`solved` (weight 1) for the highest raw reward; the raw reward itself has weight 0."""
        self.over()
        raw = self._raw if self._raw is not None else 0.0
        return reward(solved=float(raw >= 1.0), raw=(raw if -1e6 < raw < 1e6 else 0.0, 0.0))

    def copy(self) -> None:
        """A real page is replayed."""

    def digest(self) -> str:
        """The server has no state."""
        return ""

    def close(self) -> None:
        """Close the page."""
        self.browser.close()
