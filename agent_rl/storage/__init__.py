"""What a run leaves on disk: rows in a database, forests in append-only files. Nothing is ever half-written."""

from agent_rl.storage.config import StorageConfig
from agent_rl.storage.credits_file import load_credits, save_credits
from agent_rl.storage.errors import DamagedFile, StorageFull
from agent_rl.storage.forest_file import load_forest, save_forest
from agent_rl.storage.listing import list_runs
from agent_rl.storage.store import Store

__all__ = [
    "DamagedFile",
    "StorageConfig",
    "StorageFull",
    "Store",
    "list_runs",
    "load_credits",
    "load_forest",
    "save_credits",
    "save_forest",
]
