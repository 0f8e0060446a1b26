"""One line a step for a person at a terminal 80 columns wide.

        step  success  reward  no spread  turns   tok/s   s/step    left
       12/60     0.53    0.61        25%    3.1   1,234      4.2    3:21

`no spread` is the share of groups in which every episode earned the same: they teach nothing. Faults are shown
when there are any.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable

from rich.console import Console

from agent_rl.types import Metrics

_HEADER = f"{'step':>12}{'success':>9}{'reward':>8}{'no spread':>11}{'turns':>7}{'tok/s':>8}{'s/step':>8}{'left':>8}"
_HEADER_EVERY = 20
_WINDOW = 10
"""Steps over which the estimate averages."""


class ConsoleSink:
    """Prints; a progress bar on the same console stays below the lines."""

    def __init__(
        self,
        console: Console | None = None,
        *,
        steps: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start the clock.

        Args:
            console: to print on; the standard output by default.
            steps: of the whole run; without it nothing is estimated.
            clock: seconds, for steps whose metrics do not say `step_s`.
        """
        self._console = console or Console()
        self._steps = steps
        self._clock = clock
        self._last = clock()
        self._durations: deque[float] = deque(maxlen=_WINDOW)
        self._lines = 0

    def record(self, step: int, metrics: Metrics) -> None:
        """Print one line; what is missing shows as "-"."""
        now = self._clock()
        duration = metrics.get("step_s", now - self._last)
        self._last = now
        self._durations.append(duration)
        if self._lines % _HEADER_EVERY == 0:
            self._print(_HEADER, style="bold")
        self._lines += 1
        done = f"{step + 1}/{self._steps}" if self._steps else f"{step + 1}"
        cells = [
            f"{done:>12}",
            f"{_number(metrics, 'rollout/success', '.2f'):>9}",
            f"{_number(metrics, 'rollout/reward', '.2f'):>8}",
            f"{_number(metrics, 'rollout/zero_spread', '.0%'):>11}",
            f"{_number(metrics, 'rollout/turns', '.1f'):>7}",
            f"{_number(metrics, 'rollout/tokens_per_s', ',.0f'):>8}",
            f"{duration:>8.1f}",
            f"{self._left(step):>8}",
        ]
        self._print("".join(cells))
        faults = metrics.get("rollout/faults", 0.0)
        if faults:
            self._print(f"{'':>12}{faults:g} of {_number(metrics, 'rollout/episodes', 'g')} episodes faulted")

    def close(self) -> None:
        """Nothing to release."""

    def _left(self, step: int) -> str:
        if not self._steps:
            return "-"
        seconds = sum(self._durations) / len(self._durations) * max(self._steps - step - 1, 0)
        if not math.isfinite(seconds):
            return "-"
        minutes, rest = divmod(round(seconds), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"

    def _print(self, text: str, style: str | None = None) -> None:
        self._console.print(text, style=style, highlight=False, markup=False, soft_wrap=True)


def _number(metrics: Metrics, name: str, form: str) -> str:
    value = metrics.get(name)
    return "-" if value is None or not math.isfinite(value) else format(value, form)
