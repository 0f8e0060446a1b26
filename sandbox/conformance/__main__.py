"""`python -m sandbox.conformance BACKEND [CASE ...]`: the report as JSON; names of cases on stderr as they begin."""

from __future__ import annotations

import json
import sys

from sandbox import conformance


def main(backend: str, *cases: str) -> int:
    """Try a backend; 1 when something fails."""
    report = conformance.run(
        backend, cases=cases or None, progress=lambda name: print(name, file=sys.stderr, flush=True)
    )
    print(json.dumps(report.to_json()))
    return 0 if report.passed else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
