"""Three stateful sites, each a FastAPI application over a database that a seed fills."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envs.web.plans import SiteSpec


@cache
def all_sites() -> dict[str, SiteSpec]:
    """The sites by name."""
    from envs.web.sites import shop_tasks, tracker_tasks, wiki_tasks

    specs = (shop_tasks.SPEC, tracker_tasks.SPEC, wiki_tasks.SPEC)
    return {spec.name: spec for spec in specs}
