"""One target under libFuzzer by way of atheris: `python -m tests.sandbox.fuzz.guided TARGET FOLDER... [-option]`."""

from __future__ import annotations

import sys
import warnings

import atheris

with warnings.catch_warnings(), atheris.instrument_imports(include=["sandbox", "tarfile", "h11"]):
    warnings.simplefilter("ignore")
    from tests.sandbox.fuzz import targets


def main() -> None:
    target = targets.TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
