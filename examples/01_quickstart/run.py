"""The main job: warm-start a tiny transformer on sloppy demonstrations, then let it learn to choose by RL."""

import argparse
import json
import os
import platform
import time
from pathlib import Path

from rich.console import Console

from agent_rl.cli.console import ConsoleProgress
from agent_rl.cli.tables import reports_table
from agent_rl.config import load
from agent_rl.runs import train_run
from agent_rl.storage import Store
from agent_rl.telemetry import draw_learning_curve
from agent_rl.telemetry import make as make_sinks

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/quickstart"))
    parser.add_argument("overrides", nargs="*", help="settings such as trainer.steps=5")
    args = parser.parse_args()
    settings = [f"seed={args.seed}", f"run_dir={json.dumps(str(args.out))}", *args.overrides]
    config = load(HERE / "quickstart.toml", settings)
    console = Console()
    began = time.perf_counter()
    with ConsoleProgress(console) as progress:
        sinks = [make_sinks(config.telemetry, args.out, steps=config.trainer.steps, console=console)]
        reports = train_run(config, progress=progress, sinks=sinks)
    seconds = time.perf_counter() - began
    store = Store.open(args.out)
    steps = store.steps()
    title = f"sql-v1, level 0, seed {args.seed}: {reports['after'].tasks} held-out tasks"
    draw_learning_curve(args.out / "learning_curve.png", steps, store.evaluations(), title=title)
    report = {
        "command": f"make quickstart SEED={args.seed} OUT={args.out}",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "seed": args.seed,
        "seconds": round(seconds, 1),
        "eval": {name: reports[name].to_json() for name in ("before", "after")},
        "steps": [{"step": s["step"] + 1, **s["metrics"]} for s in steps],
    }
    (args.out / "report.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    console.print(reports_table([reports["before"], reports["after"]]))
    console.print(
        f"{seconds:.0f} s; report {args.out / 'report.json'}, curve {args.out / 'learning_curve.png'}\n"
        "next: agent-rl play sql-v1 --policy sloppy            see what it imitated\n"
        f"      agent-rl runs show {args.out}    every step of this run\n"
        "      examples/02_own_environment/                    write your own environment",
        highlight=False,
    )


if __name__ == "__main__":
    main()
