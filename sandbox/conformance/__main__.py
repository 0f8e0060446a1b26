"""`python -m sandbox.conformance BACKEND`: one report as JSON, for the matrix, which needs other users' processes."""

from __future__ import annotations

import json
import sys

from sandbox.conformance import run


def main() -> None:
    """Run the cases of one backend; progress goes to standard error."""
    report = run(sys.argv[1], progress=lambda name: print(name, file=sys.stderr, flush=True))
    print(json.dumps(report.to_json()))


if __name__ == "__main__":
    main()
