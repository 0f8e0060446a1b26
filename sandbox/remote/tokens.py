"""Where tokens come from: a file or the environment, never an address or a command line."""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Mapping
from pathlib import Path

TOKEN_VARIABLE = "AGENT_RL_SANDBOX_TOKEN"
TOKEN_FILE_VARIABLE = "AGENT_RL_SANDBOX_TOKEN_FILE"
MIN_LENGTH = 32
_MAX_FILE_BYTES = 65536
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")
_CLIENT = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAKE_ONE = "make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'"


def check_token(token: str) -> str:
    """The token, if it is one.

    Raises:
        ValueError: it is too short to be safe, or has characters that a header cannot carry.
    """
    if len(token) < MIN_LENGTH or not _TOKEN.fullmatch(token):
        raise ValueError(
            f"a token has at least {MIN_LENGTH} letters, digits or ._~+/=-, but this one ({len(token)} characters) "
            f"does not fit; {_MAKE_ONE}"
        )
    return token


def read_tokens(path: Path) -> dict[str, str]:
    """Tokens by client's name. One a line: `TOKEN`, or `NAME:TOKEN` where several clients have quotas of their own.

    Raises:
        ValueError: no token, or one that is not safe.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        text = file.read(_MAX_FILE_BYTES).decode("utf-8", "replace")
    tokens: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, colon, token = line.rpartition(":")
        name = name if colon else f"client{number}"
        if not _CLIENT.fullmatch(name) or name in tokens:
            raise ValueError(
                f"{path}, line {number}: a client's name is new, and of letters, digits, - and _"
            )
        tokens[name] = check_token(token)
    if not tokens:
        raise ValueError(f"{path} holds no token; {_MAKE_ONE}")
    return tokens


def client_token(environ: Mapping[str, str] = os.environ) -> str | None:
    """The token of a client, from the environment or the file that it names.

    Raises:
        ValueError: it is not one.
        OSError: the file cannot be read.
    """
    if token := environ.get(TOKEN_VARIABLE):
        return check_token(token.strip())
    if name := environ.get(TOKEN_FILE_VARIABLE):
        return next(iter(read_tokens(Path(name)).values()))
    return None


def server_tokens(file: Path | None, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Tokens of a server: of the file, else of the environment as for a client; empty without any.

    Raises:
        As `read_tokens`.
    """
    if file is not None:
        return read_tokens(file)
    if name := environ.get(TOKEN_FILE_VARIABLE):
        return read_tokens(Path(name))
    if token := environ.get(TOKEN_VARIABLE):
        return {"client": check_token(token.strip())}
    return {}


def holder(tokens: Mapping[str, str], header: str) -> str | None:
    """Whose token an `Authorization` header carries; takes equally long whichever it is."""
    given = header.removeprefix("Bearer ").encode("latin-1", "replace")
    found = None
    for name, token in tokens.items():
        if hmac.compare_digest(token.encode(), given):
            found = name
    return found
