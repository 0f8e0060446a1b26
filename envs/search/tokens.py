"""Tokens of corpus servers, as those of sandbox servers: from a file or the environment, never from a command line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from sandbox.remote import tokens

TOKEN_VARIABLE = "AGENT_RL_SEARCH_TOKEN"


def client_token(environ: Mapping[str, str] = os.environ) -> str | None:
    """The token of a client: `AGENT_RL_SEARCH_TOKEN`, or the first of the file `AGENT_RL_SEARCH_TOKEN_FILE`.

    Raises:
        ValueError: it is not one.
        OSError: the file cannot be read.
    """
    return tokens.client_token(_renamed(environ))


def server_tokens(file: Path | None, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Tokens of a server by client's name; empty without any.

    Raises:
        As `client_token`.
    """
    return tokens.server_tokens(file, _renamed(environ))


def _renamed(environ: Mapping[str, str]) -> dict[str, str]:
    names = {
        TOKEN_VARIABLE: tokens.TOKEN_VARIABLE,
        f"{TOKEN_VARIABLE}_FILE": tokens.TOKEN_FILE_VARIABLE,
    }
    return {names[name]: value for name, value in environ.items() if name in names}
