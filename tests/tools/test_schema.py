from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from tools import Tool, ToolError, tool, tools_of


class Filter(BaseModel):
    column: str
    above: float = 0.0


@tool
def find(
    name: str,
    limit: int = 10,
    order: Literal["up", "down"] = "up",
    tags: list[str] | None = None,
    where: Filter | None = None,
) -> str:
    """Find products
    by name.

    More that the model need not read.

    Args:
        name: part of the name,
            in any case.
        limit (int): most rows.

    Returns:
        text: not a parameter.
    """
    return f"{name}/{limit}/{order}/{tags}/{where}"


FIND = Tool.of(find)


def test_schema_comes_from_annotations_and_docstring() -> None:
    schema = FIND.to_schema()
    assert schema["name"] == "find"
    assert schema["description"] == "Find products by name."
    properties = schema["parameters"]["properties"]
    assert list(properties) == ["name", "limit", "order", "tags", "where"]
    assert properties["name"] == {"type": "string", "description": "part of the name, in any case."}
    assert properties["limit"] == {"type": "integer", "default": 10, "description": "most rows."}
    assert properties["order"] == {"type": "string", "enum": ["up", "down"], "default": "up"}
    assert schema["parameters"]["required"] == ["name"]
    assert schema["parameters"]["additionalProperties"] is False


def test_the_function_is_still_a_function() -> None:
    assert find("a") == "a/10/up/None/None"


def test_call_converts_and_leaves_defaults_to_the_function() -> None:
    assert FIND.call(name="a", where={"column": "price"}) == "a/10/up/None/column='price' above=0.0"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "argument 'name' is required and missing"),
        ({"name": 3}, "argument 'name' must be a valid string, got 3"),
        ({"name": "a", "limit": "10"}, "argument 'limit' must be a valid integer, got \"10\""),
        ({"name": "a", "limit": True}, "argument 'limit' must be a valid integer, got true"),
        ({"name": "a", "limit": 1.5}, "argument 'limit' must be a valid integer"),
        ({"name": "a", "order": "left"}, "argument 'order' must be 'up' or 'down', got \"left\""),
        ({"name": "a", "limt": 3}, "argument \"limt\" does not exist; did you mean 'limit'?"),
        ({"name": "a", "tags": ["x", 1]}, "argument 'tags.1' must be a valid string, got 1"),
        ({"name": "a", "where": {"colum": "p"}}, "argument 'where.column'"),
        ({"name": "a", "limit": float("inf")}, 'argument "limit": numbers must be finite, got inf'),
        ({"name": "a", "limit": float("nan")}, 'argument "limit": numbers must be finite, got nan'),
        ({"name": "a", "limit": 2**63}, "integers must fit 64 bits, got one of 64 bits"),
        ({"name": "a", "limit": 10**6000}, "integers must fit 64 bits, got one of 19932 bits"),
        ({"name": "\ud800"}, 'text must be valid Unicode, got "\\ud800"'),
        ({"name": "a", "tags": [b"x"]}, "values must be JSON"),
    ],
)
def test_wrong_arguments_name_rule_value_and_form(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ToolError) as caught:
        FIND.call(**arguments)
    assert message in str(caught.value)
    assert 'Valid form: find(name: str, limit: int = 10, order: "up" | "down" = "up"' in str(caught.value)


def test_nesting_has_a_limit() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(ToolError, match="nested 64 deep"):
        FIND.call(name="a", tags=value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.characters(categories=["Cs"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(st.sampled_from(["name", "limit", "order", "tags", "where", "self", "x"]), json_values)
)
def test_any_arguments_run_or_raise_tool_error(arguments: dict[str, Any]) -> None:
    try:
        FIND.call(**arguments)
    except ToolError as error:
        str(error).encode()


def test_parameters_may_be_named_like_anything() -> None:
    @tool
    def odd(json: str, copy: int, model_config: bool, schema: str = "s") -> list[Any]:
        return [json, copy, model_config, schema]

    assert Tool.of(odd).call(json="j", copy=1, model_config=True) == ["j", 1, True, "s"]


def test_annotated_constraints_hold() -> None:
    @tool(name="page.next", timeout_s=2)
    def page(offset: Annotated[int, Field(ge=0)]) -> int:
        return offset

    built = Tool.of(page)
    assert (built.name, built.timeout_s, built.description) == ("page.next", 2, "")
    with pytest.raises(ToolError, match="greater than or equal to 0, got -1"):
        built.call(offset=-1)


@dataclass
class Base:
    seen: list[str]

    @tool
    def second_name_first(self, x: str) -> None:
        """Keep x."""
        self.seen.append(x)

    def helper(self) -> None: ...


class Derived(Base):
    @tool
    def a(self) -> None:
        """Do a."""

    @tool
    def Z(self) -> None:
        """Do Z."""


def test_tools_of_collects_in_definition_order() -> None:
    derived = Derived([])
    tools = tools_of(derived)
    assert [t.name for t in tools] == ["second_name_first", "a", "Z"]
    tools[0].call(x="1")
    assert derived.seen == ["1"]
    assert tools[1].to_schema()["parameters"]["properties"] == {}


def test_bad_signatures_are_refused_when_decorating() -> None:
    with pytest.raises(TypeError, match="parameter 'x' has no annotation; write x: str"):

        @tool
        def bare(x) -> None: ...  # type: ignore[no-untyped-def]

    with pytest.raises(TypeError, match="must have names"):

        @tool
        def star(*x: str) -> None: ...

    with pytest.raises(TypeError, match="coroutine"):

        @tool
        async def later() -> None: ...

    with pytest.raises(ValueError, match="a tool's name has letters"):
        tool(name="two words")(find)
    with pytest.raises(ValueError, match="must be above 0, got 0"):
        tool(timeout_s=0)(find)
    with pytest.raises(TypeError, match="decorate it"):
        Tool.of(len)
