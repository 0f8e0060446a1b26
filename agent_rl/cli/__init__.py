"""`agent-rl`: few verbs, one file each. Heavy imports stand inside the verbs, so that `--help` is quick."""

from __future__ import annotations

import importlib.metadata
import sys
from typing import Annotated, Any

import typer

from agent_rl.cli.check import check
from agent_rl.cli.evaluate import evaluate
from agent_rl.cli.new import new
from agent_rl.cli.play import play
from agent_rl.cli.runs import runs
from agent_rl.cli.serve import serve
from agent_rl.cli.train import train

_INTERRUPTED = 130
"""128 + SIGINT, which Typer too exits with."""
_UsageError: Any = typer.BadParameter.__base__
"""Typer brings its own copy of Click; this is how its error of usage is reached without naming either."""

app = typer.Typer(
    help="Train and judge tool-using language-model agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(asked: bool) -> None:
    if asked:
        print(f"agent-rl {importlib.metadata.version('agent-rl')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    del version


app.command()(train)
app.command(name="eval")(evaluate)
app.command()(check)
app.command()(play)
app.command()(new)
app.add_typer(runs, name="runs")
app.add_typer(serve, name="serve")


def main() -> None:
    """Run a verb. A user's mistake is one sentence with the next step, not a traceback."""
    from agent_rl.cli.mistakes import explain

    try:
        status = app(standalone_mode=False)
    except SystemExit as ended:
        status = ended.code
    except _UsageError as error:
        error.show()
        status = 2
    except (typer.Abort, KeyboardInterrupt):
        status = _INTERRUPTED
    except (ValueError, OSError, ImportError, RuntimeError) as error:
        sentence = explain(error)
        if sentence is None:
            raise
        print(f"agent-rl: {sentence}", file=sys.stderr)
        status = 2
    if status == _INTERRUPTED:
        print("\nstopped; the same command continues from the newest checkpoint", file=sys.stderr)
    sys.exit(status)


__all__ = ["app", "main"]
