"""A tool's schema as one line of Python-like text: `find(name: str, limit: int = 10)`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tools.types import ToolSchema

_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "object": "dict",
    "null": "None",
}
_NAMES = {None: "None", True: "True", False: "False"}


def signature(schema: ToolSchema) -> str:
    """The tool with its parameters, their types and defaults, in the order of the schema."""
    parameters = schema["parameters"]
    definitions = parameters.get("$defs", {})
    parts = []
    for name, property_schema in parameters.get("properties", {}).items():
        part = f"{name}: {type_text(property_schema, definitions)}"
        if "default" in property_schema:
            part += f" = {_literal(property_schema['default'])}"
        elif name not in parameters.get("required", ()):
            part += " = ..."
        parts.append(part)
    return f"{schema['name']}({', '.join(parts)})"


def type_text(schema: Mapping[str, Any], definitions: Mapping[str, Any] | None = None, depth: int = 0) -> str:
    """The type of a JSON schema in Python's words; `Any` where it says nothing."""
    if depth > 4:
        return "Any"
    if "$ref" in schema:
        target = (definitions or {}).get(str(schema["$ref"]).rsplit("/", 1)[-1], {})
        return type_text(target, definitions, depth + 1)
    if "const" in schema:
        return _literal(schema["const"])
    if "enum" in schema:
        return " | ".join(_literal(value) for value in schema["enum"])
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return " | ".join(
                dict.fromkeys(type_text(option, definitions, depth + 1) for option in schema[key])
            )
    kind = schema.get("type")
    if kind == "array":
        items = schema.get("items")
        return f"list[{type_text(items, definitions, depth + 1)}]" if isinstance(items, Mapping) else "list"
    if isinstance(kind, list):
        return " | ".join(type_text({**schema, "type": each}, definitions, depth + 1) for each in kind)
    return _TYPES.get(str(kind), "Any")


def _literal(value: object) -> str:
    if value is None or isinstance(value, bool):
        return _NAMES[value]
    return json.dumps(value, ensure_ascii=False)
