"""Environments by versioned id, dotted path, file or server: `sql-v1`, `package.module:Class`, `path/file.py:Class`,
`http://127.0.0.1:8701`.

Nothing is imported before `make` or `load`; this module itself imports neither gymnasium nor any environment.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envs.errors import UnknownEnvError

if TYPE_CHECKING:
    from envs.base import Env

ENTRY_POINT_GROUP = "agent_rl.envs"
SCHEMES = ("http", "https", "ws", "wss")
"""Of a server's address."""
_REMOTE = tuple(f"{scheme}://" for scheme in SCHEMES)
_ID = re.compile(r"(?P<name>[a-z0-9][a-z0-9_.-]*)-v(?P<version>\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvSpec:
    """How an environment is made: where its class is and what its constructor gets."""

    id: str
    entry_point: str | type[Env]
    """`package.module:Class`, `path/file.py:Class`, a server's `http://HOST:PORT`, or the class itself."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> type[Env]:
        """Import the class.

        Raises:
            UnknownEnvError: the module, file or class does not exist, or is no `Env`.
        """
        from envs.base import Env

        if isinstance(self.entry_point, str) and self.entry_point.startswith(_REMOTE):
            from envs.remote.client import remote_class

            return remote_class(self.entry_point)
        found = _load(self.entry_point) if isinstance(self.entry_point, str) else self.entry_point
        if not (isinstance(found, type) and issubclass(found, Env)):
            raise UnknownEnvError(f"{self.entry_point} is not a class derived from Env: {found!r:.100}")
        return found


_BUILT_IN = {
    "sql-v1": "envs.sql.env:SqlEnv",
    "code-v1": "envs.code.env:CodeEnv",
    "search-v1": "envs.search.env:SearchEnv",
    "swe-v1": "envs.swe.env:SweEnv",
    "web-v1": "envs.web.env:WebEnv",
}
_registry: dict[str, EnvSpec] = {
    name: EnvSpec(id=name, entry_point=where) for name, where in _BUILT_IN.items()
}


def register(id: str, entry_point: str | type[Env], *, replace: bool = False, **kwargs: Any) -> None:
    """Make an environment known under a versioned id; `kwargs` go to its constructor.

    Raises:
        ValueError: the id has no version, or is taken by something else (`replace=True` overrides).
    """
    if not _ID.fullmatch(id):
        raise ValueError(f"an id is lower-case and ends in a version, such as 'shop-v1', got {id!r}")
    if isinstance(entry_point, str) and ":" not in entry_point:
        raise ValueError(
            f"an entry point is 'package.module:Class' or 'path/file.py:Class', got {entry_point!r}"
        )
    spec = EnvSpec(id=id, entry_point=entry_point, kwargs=dict(kwargs))
    if not replace and _registry.get(id, spec) != spec:
        raise ValueError(f"{id!r} is already registered as {_registry[id].entry_point}: raise the version")
    _registry[id] = spec
    if _mirrored:
        register_gymnasium()


def make(id: str, **kwargs: Any) -> Env:
    """Make the bare environment of an id or path; `kwargs` override the registered ones.

    Raises:
        UnknownEnvError: nothing is known under this id; the message names the nearest.
    """
    found = spec(id)
    env = found.load()(**{**found.kwargs, **kwargs})
    env.spec = gymnasium_spec(found)
    return env


def spec(id: str) -> EnvSpec:
    """Find what `make` would make, without importing it.

    Raises:
        UnknownEnvError: nothing is known under this id; the message names the nearest.
    """
    known = _known()
    if id in known:
        return known[id]
    if ":" in id:
        return EnvSpec(id=id, entry_point=id)
    raise UnknownEnvError(_unknown(id, sorted(known)))


def list_ids() -> list[str]:
    """All registered ids, those of installed plugins included, sorted."""
    return sorted(_known())


def _known() -> dict[str, EnvSpec]:
    return {**_plugins(), **_registry}


@lru_cache(maxsize=1)
def _plugins() -> dict[str, EnvSpec]:
    found = entry_points(group=ENTRY_POINT_GROUP)
    return {point.name: EnvSpec(id=point.name, entry_point=point.value) for point in found}


def _unknown(id: str, known: list[str]) -> str:
    match = _ID.fullmatch(id)
    name = match["name"] if match else id
    versions = sorted(int(m["version"]) for k in known if (m := _ID.fullmatch(k)) and m["name"] == name)
    if versions:
        lacks = f"has no version {match['version']}" if match else "needs a version"
        return f"{name!r} {lacks}: the latest is {f'{name}-v{versions[-1]}'!r}"
    near = difflib.get_close_matches(id, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known ids: {', '.join(known)}"
    return f"no environment is called {id!r}: {hint} (your own: 'package.module:Class' or 'file.py:Class')"


# ------------------------------------------------------------------------------------------------- loading


def _load(entry_point: str) -> Any:
    where, _, attribute = entry_point.rpartition(":")
    module = _load_file(Path(where)) if where.endswith(".py") else _load_module(where)
    if not hasattr(module, attribute):
        near = difflib.get_close_matches(attribute, vars(module), n=1)
        hint = f", did you mean {near[0]!r}?" if near else ""
        raise UnknownEnvError(f"{where} has no {attribute!r}{hint}")
    return getattr(module, attribute)


def _load_module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise UnknownEnvError(
                f"there is no module {name!r}: install it, or run where it can be imported"
            ) from error
        raise


def _load_file(path: Path) -> Any:
    if not path.is_file():
        raise UnknownEnvError(f"there is no file {str(path)!r} (looked in {Path.cwd()})")
    full = path.resolve()
    name = f"agent_rl_file_{full.stem}_{hashlib.blake2b(str(full).encode(), digest_size=4).hexdigest()}"
    if name in sys.modules:
        return sys.modules[name]
    module_spec = importlib.util.spec_from_file_location(name, full)
    if module_spec is None or module_spec.loader is None:
        raise UnknownEnvError(f"{str(path)!r} cannot be imported")
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[name] = module
    try:
        module_spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


# ----------------------------------------------------------------------------------------------- gymnasium

_mirrored = False


def gymnasium_id(id: str) -> str:
    """The id under which gymnasium knows an environment: `agent_rl/sql-v1`."""
    return f"agent_rl/{re.sub(r'[^A-Za-z0-9_.:-]', '.', id)}"


def gymnasium_spec(found: EnvSpec) -> Any:
    """The same environment as a `gymnasium.envs.registration.EnvSpec`."""
    from gymnasium.envs.registration import EnvSpec as GymnasiumSpec

    return GymnasiumSpec(id=gymnasium_id(found.id), entry_point=_Maker(found.id), kwargs=dict(found.kwargs))


def register_gymnasium() -> None:
    """Let `gymnasium.make("agent_rl/sql-v1")` find every registered environment; safe to call again.

    Gymnasium before 1.4 calls this by itself through its plugin entry point; later versions have no plugins,
    and importing `envs.base` calls it.
    """
    global _mirrored
    from gymnasium.envs import registration

    _mirrored = True
    for id in list_ids():
        registration.registry[gymnasium_id(id)] = gymnasium_spec(_known()[id])


@dataclass(frozen=True, slots=True)
class _Maker:
    """Loads the class when called; compares by id, which a plain function would not."""

    id: str

    def __call__(self, **kwargs: Any) -> Env:
        return make(self.id, **kwargs)
