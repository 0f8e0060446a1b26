"""`agent-rl check ENV`: is this environment sound, and are its rewards hard to fake?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, NoReturn

import typer


def check(
    target: Annotated[
        str,
        typer.Argument(
            help="Environment id, package.module:Class, path/to/file.py:Class, sandbox:BACKEND, or sandbox:matrix."
        ),
    ],
    n: Annotated[int, typer.Option(help="Tasks a rule looks at.", min=1)] = 8,
    seed: Annotated[int, typer.Option()] = 0,
    tasks_file: Annotated[str, typer.Option("--tasks", "--tasks-file", help="JSONL of your own tasks.")] = "",
    out: Annotated[Path, typer.Option(help="The page of sandbox:matrix.")] = Path("docs/sandbox-matrix.md"),
    as_json: Annotated[bool, typer.Option("--json", help="Machine output.")] = False,
) -> None:
    """Check an environment, or a sandbox backend, against every rule; exit status 1 when one fails."""
    if target.startswith("sandbox:"):
        _check_sandbox(target.removeprefix("sandbox:"), out, as_json=as_json)
    from rich.console import Console

    from agent_rl.cli.console import ConsoleProgress
    from envs.checker import check as check_env
    from envs.tasksets import load_jsonl

    console = Console(stderr=as_json)
    found = load_jsonl(tasks_file, target) if tasks_file else None
    for error in found.errors if found is not None else ():
        console.print(
            f"{error.file}:{error.line}: {error.field}: {error.message}", highlight=False, markup=False
        )
    with ConsoleProgress(console) as progress:
        report = check_env(
            target,
            tasks=None if found is None else found.tasks,
            n=n,
            seed=seed,
            progress=lambda name: progress.phase(name, 1),
        )
    print(json.dumps(report.to_json()) if as_json else report.text())
    raise typer.Exit(0 if report.passed else 1)


def _check_sandbox(backend: str, out: Path, *, as_json: bool) -> NoReturn:
    from rich.console import Console

    from agent_rl.cli.console import ConsoleProgress
    from sandbox import conformance
    from sandbox.conformance import matrix

    with ConsoleProgress(Console(stderr=True)) as progress:

        def tell(name: str) -> None:
            progress.phase(name, 1)

        if backend != "matrix":
            report = conformance.run(backend, progress=tell)
            print(json.dumps(report.to_json()) if as_json else report.text())
            raise typer.Exit(0 if report.passed else 1)
        reports = {}
        for column, command in matrix.columns().items():
            reports[column] = matrix.measure(command, tell)
            progress.say(f"{column}: {reports[column].text().splitlines()[-1]}")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(matrix.page(reports), encoding="utf-8")
    print(json.dumps({c: r.to_json() for c, r in reports.items()}) if as_json else out)
    raise typer.Exit(0 if all(r.passed for r in reports.values()) else 1)
