"""Choosing a member of a seam by name: an explicit map, a dotted path for one's own, and a helpful error."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import Any


def resolve(setting: str, name: str, members: Mapping[str, Any]) -> Any:
    """Look `name` up in `members`, or import it when it reads `package.module:attribute`.

    A member may itself be such a path: it is imported when it is chosen, so that a map loads nothing.

    Raises:
        ValueError: the name is not known, or the path cannot be imported; the message lists the choices.
    """
    found = members.get(name, name)
    if not isinstance(found, str):
        return found
    module, colon, attribute = found.partition(":")
    if colon:
        try:
            return getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            if name in members:
                raise
            raise ValueError(f"{setting} = {name!r} cannot be imported: {error}") from error
    near = difflib.get_close_matches(name, members, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    choices = ", ".join(sorted(members))
    raise ValueError(
        f"{setting} = {name!r} is not known.{hint} Choose one of {choices}, or package.module:Name."
    )
