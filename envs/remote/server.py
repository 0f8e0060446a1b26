"""Running a server of environments: until SIGTERM, or for as long as a block lasts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from fastapi import FastAPI

from envs.remote.app import make_app
from envs.remote.service import EnvService
from envs.remote.settings import EnvSettings
from sandbox.remote import serving


def serve(settings: EnvSettings, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `ready` is told the address.

    Raises:
        UnknownEnvError: the settings name no environment.
        SandboxUnavailable: the address is taken.
    """
    serving.serve(settings, ready, _opened(settings))


def running(settings: EnvSettings) -> AbstractContextManager[str]:
    """A server in a thread of this process, for as long as the block lasts; gives its address.

    Raises:
        As `serve`.
    """
    return serving.running(settings, _opened(settings))


def _opened(settings: EnvSettings) -> serving.Open:
    def make() -> tuple[serving.Served, FastAPI]:
        service = EnvService(settings)
        return service, make_app(service)

    return make
