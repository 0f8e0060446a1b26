"""`@tool`: a Python function or method becomes something that a model may call.

    class Shop(ToolEnv):
        @tool
        def find(self, name: str, limit: int = 10) -> str:
            '''Find products by name.

            Args:
                name: part of the product's name.
                limit: most rows to return.
            '''

The JSON schema comes from the annotations through pydantic, the descriptions from the docstring. Arguments
are checked as JSON in strict mode: `"10"` is not an integer, an unknown argument is an error, a default is
left to the function. Whatever is wrong becomes a `ToolError`: the rule, the value and the valid form.
"""

from __future__ import annotations

import difflib
import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, cast, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema

from tools import docstring, values
from tools.errors import ToolError
from tools.signature import signature
from tools.types import ToolSchema

F = TypeVar("F", bound=Callable[..., Any])
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_MARK = "__agent_tool__"


class _Untitled(GenerateJsonSchema):
    """Leaves out the titles that pydantic derives from names: they repeat the name and cost tokens."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class _Mark:
    """What `@tool` leaves on a function. Model and schema are built on first use and shared by instances."""

    def __init__(self, function: Callable[..., Any], name: str | None, timeout_s: float | None) -> None:
        self.name = name or function.__name__
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"a tool's name has letters, digits, '_', '.', '-', at most 64 and no leading digit, "
                f"got {self.name!r}; pass @tool(name=...)"
            )
        if timeout_s is not None and not timeout_s > 0:
            raise ValueError(f"timeout_s of tool {self.name!r} must be above 0, got {timeout_s}")
        if inspect.iscoroutinefunction(function):
            raise TypeError(f"tool {self.name!r} is a coroutine; write a plain function, it runs in a thread")
        self.timeout_s = timeout_s
        self.description = docstring.summary(function.__doc__ or "")
        self.function = function
        self.names = _parameters(function, self.name)

    @cached_property
    def model(self) -> type[BaseModel]:
        return _argument_model(self.function, self.names)

    @cached_property
    def parameters(self) -> dict[str, Any]:
        schema = self.model.model_json_schema(schema_generator=_Untitled)
        schema.pop("title", None)
        schema.setdefault("properties", {})
        return schema


@dataclass(frozen=True, slots=True)
class Tool:
    """Something a model may call. `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    function: Callable[..., Any]
    model: type[BaseModel]
    """Checks arguments; fields are aliased to the parameter names."""
    timeout_s: float | None = None
    """Limit of one call in seconds; None takes the toolbox's."""

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Tool:
        """The tool behind a function or bound method marked by `@tool`.

        Raises:
            TypeError: the function is not marked, or an annotation cannot be resolved.
        """
        mark = getattr(function, _MARK, None)
        if not isinstance(mark, _Mark):
            raise TypeError(f"a tool is a function marked with @tool, got {function!r}; decorate it")
        return cls(mark.name, mark.description, mark.parameters, function, mark.model, mark.timeout_s)

    def to_schema(self) -> ToolSchema:
        """The tool as the model sees it."""
        return {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments for `function`, converted to its annotations; parameters not given are left out.

        Raises:
            ToolError: an argument is wrong, missing or unknown.
        """
        given = dict(arguments)
        try:
            values.check(given)
            checked = self.model.model_validate_json(json.dumps(given), strict=True)
        except ToolError as error:
            raise ToolError(f"{error}. Valid form: {signature(self.to_schema())}") from None
        except ValidationError as error:
            raise ToolError(_explain(error, self.to_schema())) from None
        fields = type(checked).model_fields
        return {str(fields[f].alias): getattr(checked, f) for f in fields if f in checked.model_fields_set}

    def call(self, /, **arguments: Any) -> Any:
        """Check the arguments and run the function.

        Raises:
            ToolError: an argument is wrong, or the function says so.
        """
        return self.function(**self.validate(arguments))


@overload
def tool(function: F) -> F: ...
@overload
def tool(*, name: str | None = None, timeout_s: float | None = None) -> Callable[[F], F]: ...
def tool(
    function: F | None = None, *, name: str | None = None, timeout_s: float | None = None
) -> F | Callable[[F], F]:
    """Mark a function or method as a tool; it can still be called as before.

    Args:
        function: every parameter must be annotated; `*args`, `**kwargs` and `/` are refused.
        name: shown to the model; the function's own by default.
        timeout_s: limit of one call; the toolbox's by default.

    Raises:
        TypeError: the signature cannot be turned into a schema.
        ValueError: the name or the limit is out of range.
    """

    def mark(target: F) -> F:
        setattr(target, _MARK, _Mark(target, name, timeout_s))
        return target

    return mark if function is None else mark(function)


def tools_of(instance: object) -> list[Tool]:
    """The `@tool` methods of an instance in definition order, those of base classes first."""
    names: dict[str, None] = {}
    for cls in reversed(type(instance).__mro__):
        names.update(dict.fromkeys(n for n, member in vars(cls).items() if hasattr(member, _MARK)))
    members = [getattr(instance, name) for name in names]
    return [Tool.of(member) for member in members if hasattr(member, _MARK)]


def _parameters(function: Callable[..., Any], name: str) -> list[str]:
    names: list[str] = []
    for i, parameter in enumerate(inspect.signature(function).parameters.values()):
        if i == 0 and parameter.name == "self":
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"tool {name!r}: parameters must have names, got {parameter}; list each argument")
        if parameter.annotation is parameter.empty:
            raise TypeError(
                f"tool {name!r}: parameter {parameter.name!r} has no annotation; write {parameter.name}: str"
            )
        names.append(parameter.name)
    return names


def _argument_model(function: Callable[..., Any], names: list[str]) -> type[BaseModel]:
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"tool {function.__name__!r}: {error}; annotate with names of its own module"
        ) from error
    described = docstring.arguments(function.__doc__ or "")
    parameters = inspect.signature(function).parameters
    fields: dict[str, Any] = {}
    for i, name in enumerate(names):
        default = parameters[name].default
        info = Field(
            ... if default is inspect.Parameter.empty else default,
            alias=name,
            description=described.get(name) or None,
        )
        fields[f"argument_{i}"] = (hints[name], info)
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
    return cast(type[BaseModel], create_model(function.__name__, __config__=config, **fields))


def _explain(error: ValidationError, schema: ToolSchema) -> str:
    known = list(schema["parameters"]["properties"])
    lines = []
    for item in error.errors(include_url=False, include_context=False)[:4]:
        name = str(item["loc"][0]) if item["loc"] else ""
        if item["type"] == "missing" and len(item["loc"]) == 1:
            lines.append(f"argument {name!r} is required and missing")
        elif item["type"] == "extra_forbidden" and len(item["loc"]) == 1:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            lines.append(f"argument {values.shown(name)} does not exist{hint}")
        else:
            where = ".".join(str(part) for part in item["loc"])
            rule = item["msg"].replace("Input should", "must", 1)
            lines.append(f"argument {where!r} {rule}, got {values.shown(item['input'])}")
    return f"{'; '.join(lines)}. Valid form: {signature(schema)}"
