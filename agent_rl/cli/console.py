"""Progress on a terminal: one bar for the running phase, one line for everything that is worth keeping."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class ConsoleProgress:
    """Implements `trainer.Progress`; without a terminal the lines remain and the bar is left out."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None, visible=False)

    def phase(self, name: str, total: int) -> None:
        """Begin a phase."""
        self._bar.reset(self._task, description=name, total=total, visible=True)

    def advance(self, n: int = 1) -> None:
        """Count finished units."""
        self._bar.advance(self._task, n)

    def say(self, text: str) -> None:
        """Print one line above the bar."""
        self.console.print(text, highlight=False, markup=False)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
