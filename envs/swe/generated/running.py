"""Running a drawn package on the host: its sources are our own templates, without `while` loops.

A mutated reference ends too, and what it raises is its answer. Nothing that a model or a user wrote comes here.
"""

from __future__ import annotations

import builtins
import copy
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from envs.code.driver import encode
from envs.code.problem import Args

_FAILURES = (
    ArithmeticError, AttributeError, LookupError, NameError, NotImplementedError, RecursionError, TypeError,
    ValueError,
)  # fmt: skip


def load(modules: Mapping[str, str]) -> dict[str, ModuleType]:
    """Modules by name, each allowed to import those before it by `from . import name`."""
    loaded: dict[str, ModuleType] = {}

    def importer(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        if level == 0:
            return __import__(name, globals, locals, fromlist, level)
        package = ModuleType("package")
        vars(package).update(loaded)
        return package

    for name, source in modules.items():
        module = ModuleType(name)
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": importer}
        exec(compile(source, f"{name}.py", "exec"), vars(module))
        loaded[name] = module
    return loaded


def outcome(function: Any, args: Args) -> dict[str, Any]:
    """What one of our own functions does with a private copy of `args`: `{"value", "args"}` or `{"raised"}`."""
    given = copy.deepcopy(args)
    try:
        value = encode(function(*given))
    except _FAILURES as error:
        return {"raised": type(error).__name__}
    return {"value": value, "args": [encode(arg) for arg in given]}
