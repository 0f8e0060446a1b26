"""Reading pytest's JUnit file, which the code under test could have written: outcomes by test, and how often."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree

Key = tuple[str, str]
"""Class name and name, as JUnit has them."""
MAX_BYTES = 8 << 20


def key_of(node_id: str) -> Key:
    """The JUnit names of a node id such as `tests/test_a.py::TestB::test_c[1]`."""
    address, bracket, parameters = node_id.partition("[")
    names = address.split("::")
    names[0] = re.sub(r"\.py$", "", names[0].replace("/", "."))
    return ".".join(names[:-1]), names[-1] + bracket + parameters


def outcomes(data: bytes) -> dict[Key, list[str]] | None:
    """For each test what each of its entries says: `passed`, `failed` or `skipped`; None for no JUnit file."""
    if len(data) > MAX_BYTES or b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        return None
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError):
        return None
    found: dict[Key, list[str]] = {}
    for case in root.iter("testcase"):
        key = (case.get("classname", ""), case.get("name", ""))
        found.setdefault(key, []).append(_outcome(child.tag for child in case))
    return found


def _outcome(tags: Iterable[str]) -> str:
    kinds = set(tags)
    if kinds & {"failure", "error"}:
        return "failed"
    return "skipped" if "skipped" in kinds else "passed"
