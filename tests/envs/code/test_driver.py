from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.code import driver
from envs.code.driver import decode, encode

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
HASHABLE = st.recursive(SCALARS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner), max_leaves=4)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.sets(HASHABLE) | st.dictionaries(HASHABLE, inner)
    ),
    max_leaves=12,
)


@settings(max_examples=60)
@given(VALUES)
def test_values_survive_the_crossing(value: Any) -> None:
    crossed = decode(json.loads(json.dumps(encode(value))))
    assert crossed == value
    assert type(crossed) is type(value)


class _Yes(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


@pytest.mark.parametrize("value", [_Yes(1), [_Yes(1)], {"a": _Yes(1)}, object(), iter([]), range(3), print])
def test_only_plain_built_in_values_cross(value: Any) -> None:
    with pytest.raises(ValueError, match="plain built-in values"):
        encode(value)


def test_depth_is_bounded() -> None:
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(ValueError, match="nested 32 deep"):
        encode(deep)
    with pytest.raises(ValueError, match="nested 32 deep"):
        decode(deep)


@pytest.mark.parametrize(
    "form",
    [{}, {"int": 1}, {"tuple": 1}, {"tuple": [1], "set": [1]}, {"bytes": 7}, {"complex": [1]}, {"dict": [[1]]},
     {"set": [[1]]}, {"dict": [[[1], 2]]}],
)  # fmt: skip
def test_malformed_forms_are_value_errors(form: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the rule differs by form, the type is the contract
        decode(form)


def test_not_a_number_crosses() -> None:
    assert math.isnan(decode(json.loads(json.dumps(encode(math.nan)))))


def ask(**request: Any) -> dict[str, Any]:
    """Run the driver outside of a sandbox: only for sources written in this file."""
    full = {"nonce": "n", "cpu_s": 2, "wall_s": 5.0, **request}
    done = subprocess.run(
        [sys.executable, "-B", "-s", str(Path(driver.__file__))],
        input=json.dumps(full).encode(),
        capture_output=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer.pop("nonce") == "n"
    return answer


def outcomes(answer: dict[str, Any]) -> list[Any]:
    return [(r.get("error"), r.get("exit"), r.get("output")) for r in answer["results"]]


def test_functions_answer_each_input_in_a_process_of_its_own() -> None:
    source = "seen = []\ndef f(x):\n    print('noise')\n    seen.append(x)\n    return (x, len(seen))\n"
    answer = ask(kind="function", source=source, entry_point="f", inputs=[[1], ["a"], [{"tuple": [2]}]])
    assert outcomes(answer) == [
        (None, 0, '{"tuple": [1, 1]}'),
        (None, 0, '{"tuple": ["a", 1]}'),
        (None, 0, '{"tuple": [{"tuple": [2]}, 1]}'),
    ]


def test_programs_read_stdin_and_print() -> None:
    source = "import sys\nif __name__ == '__main__':\n    print(input().upper(), sys.stdin.read(), end='')\n"
    answer = ask(kind="program", source=source, inputs=["a\nb", "é\n"])
    assert outcomes(answer) == [(None, 0, "A b"), (None, 0, "É ")]


@pytest.mark.parametrize(
    ("source", "exits"),
    [
        ("import sys\nprint(1)\nsys.exit(0)", 0),
        ("import sys\nprint(1)\nsys.exit(3)", 3),
        ("print(1, flush=True)\nraise ValueError", 1),
        ("import os\nprint(1, flush=True)\nos._exit(5)", 5),
        ("import os\nprint(1, flush=True)\nos.kill(os.getpid(), 9)", -9),
        ("print(1", 1),
    ],
)
def test_exit_status_of_programs(source: str, exits: int) -> None:
    ((error, status, _),) = outcomes(ask(kind="program", source=source, inputs=[""]))
    assert (error, status) == (None, exits)


def test_an_endless_loop_stops_the_series() -> None:
    source = "def f(x):\n    while x:\n        pass\n    return x\n"
    answer = ask(kind="function", source=source, entry_point="f", inputs=[[0], [1], [0]], cpu_s=1)
    assert outcomes(answer) == [(None, 0, "0"), ("processor time", None, None)]


def test_sleeping_hits_the_wall_clock() -> None:
    answer = ask(kind="program", source="import time\ntime.sleep(60)", inputs=[""], wall_s=0.2)
    assert outcomes(answer) == [("timeout", None, None)]


def test_too_much_output_is_an_error() -> None:
    answer = ask(kind="program", source="print('x' * (1 << 21))", inputs=[""])
    assert outcomes(answer) == [("output", None, None)]


def test_recording_notes_line_arguments_and_result_before_mutation() -> None:
    answer = ask(
        kind="record",
        source="def f(xs):\n    xs.append(len(xs))\n    return sum(xs)\n",
        entry_point="f",
        check="def check(candidate):\n    assert candidate([5]) == 6\n    assert candidate([]) == 0\n",
    )
    assert answer == {
        "results": [{"line": 2, "args": [[5]], "result": 6}, {"line": 3, "args": [[]], "result": 0}]
    }


def test_recording_reports_a_solution_that_fails_its_check() -> None:
    answer = ask(
        kind="record", source="def f():\n    return 1\n", entry_point="f",
        check="def check(candidate):\n    assert candidate() == 2\n",
    )  # fmt: skip
    assert answer == {"results": [], "failure": "AssertionError: "}
