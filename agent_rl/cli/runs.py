"""`agent-rl runs list|show|plot|export|clean`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

runs = typer.Typer(help="Look at runs.", no_args_is_help=True, rich_markup_mode=None)

Root = Annotated[Path, typer.Option(help="Folder that holds the runs.")]
AsJson = Annotated[bool, typer.Option("--json", help="Machine output.")]


@runs.command(name="list")
def list_(root: Root = Path("runs"), as_json: AsJson = False) -> None:
    """All runs below a folder."""
    from rich.console import Console
    from rich.table import Table

    from agent_rl.storage import list_runs

    rows = list_runs(root)
    if as_json:
        print(json.dumps(rows, default=str))
        return
    if not rows:
        Console().print(f"no runs below {root}; start one with: agent-rl train CONFIG.toml", highlight=False)
        return
    table = Table(box=None, pad_edge=False)
    for name in ("run", "status", "steps", "created"):
        table.add_column(name)
    for row in rows:
        table.add_row(str(row["path"]), str(row["status"]), str(row["steps"]), str(row["created"])[:19])
    Console().print(table)


@runs.command()
def show(run: Annotated[Path, typer.Argument(help="Folder of the run.")], as_json: AsJson = False) -> None:
    """Evaluations and the last steps of one run."""
    from rich.console import Console
    from rich.table import Table

    from agent_rl.storage import Store

    store = Store.open(run)
    steps, evaluations = store.steps(), store.evaluations()
    if as_json:
        print(json.dumps({"steps": steps, "evaluations": evaluations}, default=str))
        return
    console = Console()
    _evaluations(console, evaluations)
    if not steps:
        console.print("no step is finished yet", highlight=False)
        return
    table = Table(box=None, pad_edge=False, title=f"last {min(len(steps), 10)} of {len(steps)} steps")
    for name in ("step", "success", "zero spread", "turns", "grad norm", "tok/s", "faults"):
        table.add_column(name, justify="right")
    for row in steps[-10:]:
        m = row["metrics"]
        cells = [m.get(k, float("nan")) for k in _COLUMNS]
        table.add_row(str(row["step"] + 1), *(f"{c:.3g}" for c in cells))
    console.print(table)


@runs.command()
def plot(
    run: Annotated[Path, typer.Argument(help="Folder of the run.")],
    picture: Annotated[
        Path | None, typer.Argument(help="PNG to write; in the run's folder by default.")
    ] = None,
) -> None:
    """Draw the learning curve."""
    from agent_rl.storage import Store
    from agent_rl.telemetry import draw_learning_curve

    store = Store.open(run)
    picture = picture or run / "learning_curve.png"
    config = store.info()["config"]
    title = f"{run.resolve().name}: {config['env']['id']}, seed {config['seed']}"
    draw_learning_curve(picture, store.steps(), store.evaluations(), title=title)
    print(picture)


@runs.command()
def export(
    run: Annotated[Path, typer.Argument(help="Folder of the run.")],
    folder: Annotated[Path, typer.Argument(help="New folder for model and tokenizer.")],
) -> None:
    """Write the newest weights in Hugging Face format."""
    from agent_rl.runs import export_run

    print(export_run(run, folder))


@runs.command()
def clean(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would be removed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove what the sandboxes of killed processes left on this machine; those of living ones are not touched."""
    from sandbox import reaper

    found = reaper.audit() if dry_run else reaper.clean()
    left = [] if dry_run else reaper.audit()
    if as_json:
        print(json.dumps({"found" if dry_run else "removed": found, "left": left}))
    else:
        for name in found:
            print(f"{'left' if dry_run else 'removed'} {name}")
        if not found:
            print("nothing is left of dead processes")
    for name in left:
        print(f"cannot remove {name}; the next process with a sandbox tries again", file=sys.stderr)
    if left:
        raise typer.Exit(1)


_COLUMNS = (
    "rollout/success",
    "rollout/zero_spread",
    "rollout/turns",
    "learner/grad_norm",
    "rollout/tokens_per_s",
    "rollout/faults",
)


def _evaluations(console: Any, evaluations: list[dict[str, Any]]) -> None:
    from agent_rl.cli.tables import reports_table
    from agent_rl.evaluation import Report

    console.print(reports_table(Report(**row["report"]) for row in evaluations))
