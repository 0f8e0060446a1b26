"""One warm start, then the same RL with one key changed at a time; prints a table of success, tokens and time."""

import argparse
import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from agent_rl.cli.console import ConsoleProgress
from agent_rl.config import load
from agent_rl.runs import export_run, train_run
from agent_rl.storage import Store

HERE = Path(__file__).parent
VARIANTS = {
    "GRPO": [],
    "GiGPO": ["credit.name=anchor"],
    "Tree-GRPO": ["branching.name=random_turn"],
    "SUPO": ["context.name=summarize"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/one_key"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("overrides", nargs="*")
    args = parser.parse_args()
    console = Console()
    base = [f"seed={args.seed}", *args.overrides]
    with ConsoleProgress(console) as progress:
        warm = args.out / "warm"
        train_run(load(HERE / "base.toml", [*base, "trainer.steps=0", run_dir(warm)]), progress=progress)
        model = args.out / "model"
        if not model.exists():
            export_run(warm, model)
        rows = []
        for name, keys in VARIANTS.items():
            progress.say(f"== {name} {' '.join(keys)}")
            folder = args.out / name.lower()
            source = f"model.source={json.dumps(str(model.resolve()))}"
            settings = [*base, run_dir(folder), "warm_start.steps=0", source, *keys]
            reports = train_run(load(HERE / "base.toml", settings), progress=progress)
            rows.append(row(name, keys, folder, reports))
    table = Table(box=None, pad_edge=False)
    for column in rows[0]:
        table.add_column(column)
    for r in rows:
        table.add_row(*r.values())
    console.print(table)
    (args.out / "table.json").write_text(json.dumps(rows, indent=1))


def run_dir(folder: Path) -> str:
    return f"run_dir={json.dumps(str(folder))}"


def row(name, keys, folder, reports):
    steps = [s["metrics"] for s in Store.open(folder).steps()]

    def interval(r):
        return f"{r.success:.3f} [{r.low:.3f}, {r.high:.3f}]"

    return {
        "algorithm": name,
        "key": " ".join(keys) or "-",
        "before": interval(reports["before"]),
        "after": interval(reports["after"]),
        "sampled tokens": f"{sum(m['rollout/sampled_tokens'] for m in steps):.0f}",
        "trie / rows": f"{sum(m['learner/trie_ratio'] for m in steps) / len(steps):.2f}",
        "seconds": f"{sum(m['step_s'] for m in steps):.0f}",
    }


if __name__ == "__main__":
    main()
