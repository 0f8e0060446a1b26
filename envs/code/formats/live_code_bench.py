"""LiveCodeBench: `{question_content, question_id, starter_code, public_test_cases, private_test_cases, metadata, ...}`.

A test case is `{input, output, testtype: "stdin" | "functional"}`. Private ones may be base64 of zlib of a pickle
of JSON text; the unpickler here makes texts and nothing else. The file has no solutions.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import pickle
import zlib
from pathlib import Path
from typing import Any, NoReturn

from envs.code.formats.contest import contest_task
from envs.code.recording import refuse_visible
from envs.formats import BadRow, collect, read_records, required
from envs.taskrows import TaskFile
from envs.types import Split, Task

MAX_CASES_BYTES = 256 << 20
FIELDS = frozenset({"question_content", "public_test_cases", "private_test_cases"})


class _Texts(pickle.Unpickler):
    """A pickle may name any callable; this one may name none."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"the pickle asks for {module}.{name}; only text is accepted")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError("the pickle refers to something outside; only text is accepted")


def read(path: Path, split: Split, backend: str = "bubblewrap") -> TaskFile:
    """The tasks of a LiveCodeBench file."""
    refuse_visible(str(path), backend)
    return collect(path, read_records(path), lambda row: [_convert(row, split)])


def unpack(packed: str) -> str:
    """The JSON text in base64 of zlib of a pickle.

    Raises:
        BadRow: it is something else, or larger than `MAX_CASES_BYTES`.
    """
    try:
        inflate = zlib.decompressobj()
        raw = inflate.decompress(base64.b64decode(packed, validate=True), MAX_CASES_BYTES)
        if inflate.unconsumed_tail:
            raise BadRow("private_test_cases", f"more than {MAX_CASES_BYTES} bytes once unpacked")
        text = _Texts(io.BytesIO(raw)).load()
    except (binascii.Error, zlib.error, pickle.UnpicklingError, ValueError, EOFError) as error:
        raise BadRow("private_test_cases", f"neither JSON nor packed text: {error}") from error
    except (AttributeError, IndexError, KeyError, TypeError, MemoryError, OverflowError) as error:
        raise BadRow("private_test_cases", f"a malformed pickle: {type(error).__name__}") from error
    if not isinstance(text, str):
        raise BadRow("private_test_cases", f"the pickle holds {type(text).__name__}; only text is accepted")
    return text


def _cases(row: dict[str, Any], field: str) -> list[dict[str, Any]]:
    value = required(row, field, (str, list))
    if isinstance(value, str) and value.strip() and value.lstrip()[0] not in "[{":
        value = unpack(value)
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else []
        except (ValueError, RecursionError) as error:
            raise BadRow(field, f"a JSON list of test cases is expected: {error}") from error
    if not isinstance(value, list) or not all(isinstance(case, dict) for case in value):
        raise BadRow(field, "a list of test cases {input, output, testtype} is expected")
    return value


def _convert(row: dict[str, Any], split: Split) -> Task:
    public, private = _cases(row, "public_test_cases"), _cases(row, "private_test_cases")
    if not public + private:
        raise BadRow("private_test_cases", "there is no test case")
    kinds = {case.get("testtype", "stdin") for case in public + private}
    if kinds not in ({"stdin"}, {"functional"}):
        raise BadRow(
            "public_test_cases", f"all cases are 'stdin' or all 'functional', got {sorted(map(str, kinds))}"
        )
    functional = kinds == {"functional"}
    facts = row.get("metadata") or "{}"
    try:
        facts = json.loads(facts) if isinstance(facts, str) else facts
    except (ValueError, RecursionError) as error:
        raise BadRow("metadata", f"JSON is expected: {error}") from error
    method = facts.get("func_name", "") if isinstance(facts, dict) else ""
    if functional and not (isinstance(method, str) and method):
        raise BadRow("metadata", "functional cases need metadata.func_name")
    return contest_task(
        source="livecodebench",
        name=str(row.get("question_id", "")),
        words=required(row, "question_content"),
        starter=str(row.get("starter_code") or "") if functional else "",
        method=method if functional else "",
        tests=[_pair(case, functional) for case in public + private],
        examples=[_pair(case, functional) for case in public],
        solution=None,
        split=split,
        metadata={key: str(row[key]) for key in ("platform", "contest_date", "difficulty") if key in row},
    )


def _pair(case: dict[str, Any], functional: bool) -> tuple[Any, Any]:
    given, expected = required(case, "input"), required(case, "output")
    if not functional:
        return given, expected
    try:  # one JSON value a line, one line an argument
        return [json.loads(line) for line in given.split("\n") if line.strip()], json.loads(expected)
    except (ValueError, RecursionError) as error:
        raise BadRow("input", f"a functional case holds a JSON value a line: {error}") from error
