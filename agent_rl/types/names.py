"""Choosing a member of a seam by name: an explicit map, a dotted path for one's own, and a helpful error."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import Any


def resolve(setting: str, name: str, members: Mapping[str, Any]) -> Any:
    """Look `name` up in `members`, or import it when it reads `package.module:attribute`.

    Raises:
        ValueError: the name is not known, or the dotted path cannot be imported; the message lists the choices.
    """
    if name in members:
        return members[name]
    module, colon, attribute = name.partition(":")
    if colon:
        try:
            return getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise ValueError(f"{setting} = {name!r} cannot be imported: {error}") from error
    near = difflib.get_close_matches(name, members, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    choices = ", ".join(sorted(members))
    raise ValueError(
        f"{setting} = {name!r} is not known.{hint} Choose one of {choices}, or package.module:Name."
    )
