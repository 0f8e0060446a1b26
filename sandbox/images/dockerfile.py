"""Reading a Dockerfile that may be hostile, and writing down again what of it the daemon gets to see.

The daemon would fetch images, addresses and repositories that a Dockerfile names, from the host's network. So every
instruction is read here, what could fetch is refused, images are replaced by their ids, and the daemon is given one
plain line for each instruction: nothing that it could read differently.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from sandbox.errors import ImageError

_PLAIN = frozenset(
    {"ARG", "CMD", "ENTRYPOINT", "ENV", "EXPOSE", "HEALTHCHECK", "LABEL", "MAINTAINER", "RUN", "SHELL"}
    | {"STOPSIGNAL", "USER", "VOLUME", "WORKDIR"}
)
_KNOWN = ", ".join(sorted(_PLAIN | {"ADD", "COPY", "FROM"}))
_CONTINUED = re.compile(r"(?:(?<=[^\\])|^)\\[ \t]*$")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029]")
_COPY_FLAG = re.compile(r"--(from|chown|chmod)=([A-Za-z0-9_.:-]+)")
_ADD_WORD = re.compile(r"[A-Za-z0-9_./*?-]+")
_STAGE = re.compile(r"[a-z][a-z0-9_.-]*")
_MAX_CHARS = 1 << 20


def rewrite(text: str, find: Callable[[str], str], label: str = "") -> str:
    """What the daemon is given.

    Args:
        text: the Dockerfile.
        find: the id of a local image, by the name that a FROM has.
        label: an instruction to put behind each FROM; empty for none.

    Raises:
        ImageError: an instruction is unknown or may fetch something.
    """
    if len(text) > _MAX_CHARS:
        raise ImageError(f"a Dockerfile has at most {_MAX_CHARS} characters; this one has {len(text)}")
    lines: list[str] = []
    stages: list[str] = []
    for number, line in _logical_lines(text.removeprefix("\ufeff")):
        name, _, rest = line.partition(" ")
        name, rest = name.upper(), rest.strip()
        try:
            if name == "FROM":
                lines.append(_from(rest, stages, find))
                lines += [label] if label else []
                continue
            if not stages and name != "ARG":
                raise ImageError("an image starts with FROM")
            _check(name, rest, stages)
        except ImageError as error:
            raise ImageError(f"Dockerfile line {number}: {error}") from error
        lines.append(f"{name} {rest}")
    if not stages:
        raise ImageError("the Dockerfile has no FROM; name an image that the engine has, or scratch")
    return "\n".join(lines) + "\n"


def _check(name: str, rest: str, stages: list[str]) -> None:
    if name == "COPY":
        _check_copy(rest, stages)
    elif name == "ADD":
        if not all(_ADD_WORD.fullmatch(word) and not word.startswith("--") for word in rest.split()):
            raise ImageError(
                "ADD takes plain paths of the context here, no address and no variable; use COPY"
            )
    elif name not in _PLAIN:
        raise ImageError(f"no instruction {name[:40]!r} here. Known: {_KNOWN}")
    elif name == "RUN" and rest.startswith("--"):
        raise ImageError("RUN takes no options here; write the command alone")


def _from(rest: str, stages: list[str], find: Callable[[str], str]) -> str:
    words = rest.split()
    named = len(words) == 3 and words[1].upper() == "AS"
    if "$" in rest or not words or words[0].startswith("-") or not (named or len(words) == 1):
        raise ImageError(
            f"FROM takes IMAGE or IMAGE AS NAME, without variables and options; got {rest[:200]!r}"
        )
    stage = words[2].lower() if named else ""
    if named and not _STAGE.fullmatch(stage):
        raise ImageError(f"a stage is named by lower-case letters, digits and _.-; got {words[2][:100]!r}")
    image = words[0]
    if image.lower() not in stages and image != "scratch":
        image = find(image)
    stages.append(stage)
    return f"FROM {image}" + (f" AS {stage}" if named else "")


def _check_copy(rest: str, stages: list[str]) -> None:
    for word in rest.split():
        if not word.startswith("--"):
            return
        flag = _COPY_FLAG.fullmatch(word)
        if flag is None:
            raise ImageError(f"COPY takes --from=STAGE, --chown= and --chmod= here; got {word[:100]!r}")
        source = flag[2].lower()
        if flag[1] == "from" and not (
            source in stages[:-1] or (source.isdecimal() and int(source) < len(stages) - 1)
        ):
            raise ImageError(
                f"COPY --from={flag[2][:100]} names no earlier stage; name it by FROM ... AS NAME"
            )


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Number of the first line, and the text without comments and line ends, of each instruction."""
    first = 0
    parts: list[str] = []
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.removesuffix("\r").replace("\t", " ")
        if _CONTROL.search(line) or "\r" in line:
            raise ImageError(f"Dockerfile line {number} has a control character; remove it")
        if line.lstrip().startswith("#"):
            if re.match(r"#\s*escape\s*=\s*[^\\\s]", line.strip(), re.IGNORECASE):
                raise ImageError(
                    f"Dockerfile line {number}: the escape character is \\ here; remove the directive"
                )
            continue
        if not line.strip():
            continue
        first = first if parts else number
        continued = _CONTINUED.search(line)
        parts.append(line[: continued.start()] if continued else line)
        if not continued:
            yield first, "".join(parts).strip()
            parts = []
    if parts and (rest := "".join(parts).strip()):
        yield first, rest
