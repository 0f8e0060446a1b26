"""The origin lock: which addresses a browser may ever ask for."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

from tools.errors import ToolError

MAX_URL = 2000
_DEFAULT_PORTS = {"http": 80, "https": 443}


def origin_of(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port of an http address; None for every other kind and for what is no address."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    scheme, host = parts.scheme.lower(), parts.hostname
    if scheme not in _DEFAULT_PORTS or not host or parts.username is not None or parts.password is not None:
        return None
    return scheme, host.lower().rstrip("."), port if port is not None else _DEFAULT_PORTS[scheme]


def resolve(base: str, url: str) -> str:
    """The absolute address of a link, without its fragment.

    Raises:
        ToolError: it leads out of `base`'s origin (scheme, host and port), or is no address.
    """
    text = url.strip()
    if len(text) > MAX_URL:
        raise ToolError(f"an address has at most {MAX_URL} characters, got {len(text)}")
    if any(ord(c) < 32 or ord(c) == 127 for c in text) or "\\" in text:
        raise ToolError("an address has no control characters and no backslashes")
    try:
        full = urljoin(base, text)
    except ValueError as error:
        raise ToolError(f"not an address: {text[:100]!r}") from error
    if origin_of(full) is None or origin_of(full) != origin_of(base):
        site = base.split("/", 3)
        raise ToolError(f"only pages of {'/'.join(site[:3])} can be opened, not {text[:100]!r}")
    return full.partition("#")[0]
