"""`agent-rl`: few verbs, one file each. Heavy imports stand inside the verbs, so that `--help` is quick."""

from __future__ import annotations

import sys
from typing import Any

import typer

from agent_rl.cli.check import check
from agent_rl.cli.evaluate import evaluate
from agent_rl.cli.play import play
from agent_rl.cli.runs import runs
from agent_rl.cli.train import train

_UsageError: Any = typer.BadParameter.__base__
"""Typer brings its own copy of Click; this is how its error of usage is reached without naming either."""

app = typer.Typer(
    help="Train and judge tool-using language-model agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(train)
app.command(name="eval")(evaluate)
app.command()(check)
app.command()(play)
app.add_typer(runs, name="runs")


def main() -> None:
    """Run a verb. A user's mistake is one sentence with the next step, not a traceback."""
    from agent_rl.cli.mistakes import explain

    try:
        sys.exit(app(standalone_mode=False))
    except _UsageError as error:
        error.show()
        sys.exit(2)
    except (typer.Abort, KeyboardInterrupt):
        print("\nstopped; the same command continues from the newest checkpoint", file=sys.stderr)
        sys.exit(130)
    except (ValueError, OSError, ImportError, RuntimeError) as error:
        sentence = explain(error)
        if sentence is None:
            raise
        print(f"agent-rl: {sentence}", file=sys.stderr)
        sys.exit(2)


__all__ = ["app", "main"]
