"""The program that runs pytest inside the grading sandbox; copied into it as one file.

Standard input: `{"cpu_s", "kit", "roots": [folder, ...], "arguments": [...]}`. It is started without `site`, so that no
`sitecustomize`, `.pth` file or user folder is looked at. pytest is imported before the repository can be.
"""

from __future__ import annotations

import json
import resource
import sys


def main() -> None:
    """Run pytest as the request says and exit with its status."""
    request = json.loads(sys.stdin.buffer.read())
    resource.setrlimit(resource.RLIMIT_CPU, (request["cpu_s"], request["cpu_s"] + 1))
    sys.path.insert(0, request["kit"])
    import pytest

    sys.path.extend(request["roots"])
    sys.exit(int(pytest.main(request["arguments"])))


if __name__ == "__main__":
    main()
