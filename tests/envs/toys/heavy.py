"""Loads what it takes for a learning library when it is imported."""

from __future__ import annotations

import sys
from types import ModuleType

from tests.envs.toys.sums import Sums

sys.modules.setdefault("tensorflow", ModuleType("tensorflow"))


class Heavy(Sums):
    pass
