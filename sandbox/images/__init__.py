"""Images for Docker sandboxes: built of a Dockerfile, or imported as a root file system, once for the same content."""

from __future__ import annotations

from sandbox.images.build import BuildLimits, build, import_root
from sandbox.images.context import ContextLimits

__all__ = ["BuildLimits", "ContextLimits", "build", "import_root"]
