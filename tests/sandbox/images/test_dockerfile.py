"""What the daemon gets to see of a hostile Dockerfile, without a daemon."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.errors import ImageError
from sandbox.images.dockerfile import rewrite


def _find(name: str) -> str:
    if name != "base:1":
        raise ImageError(f"no image {name}")
    return "sha256:feed"


def test_an_ordinary_file_comes_through_in_plain_lines() -> None:
    text = """# syntax=evil/frontend
ARG V=1
FROM base:1 as Build
RUN echo a && \\
    # a comment within
    echo b \\\\
COPY --chown=1:1 x y

from scratch
COPY --from=build /y /z
COPY --from=0 ["/y", "/w"]
ADD a.tar b/ /c/
CMD ["sh"]
"""
    assert rewrite(text, _find, "LABEL a=1").split("\n") == [
        "ARG V=1",
        "FROM sha256:feed AS build",
        "LABEL a=1",
        "RUN echo a &&     echo b \\\\",
        "COPY --chown=1:1 x y",
        "FROM scratch",
        "LABEL a=1",
        "COPY --from=build /y /z",
        'COPY --from=0 ["/y", "/w"]',
        "ADD a.tar b/ /c/",
        'CMD ["sh"]',
        "",
    ]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("", "no FROM"),
        ("RUN x", "starts with FROM"),
        ("FROM other", "no image other"),
        ("ARG I=x\nFROM $I", "without variables"),
        ("FROM --platform=x base:1", "without variables and options"),
        ("FROM base:1\nADD http://169.254.169.254/ /x", "plain paths"),
        ("FROM base:1\nARG U=http://x\nADD $U /x", "plain paths"),
        ("FROM base:1\nADD git@host:x /x", "plain paths"),
        ('FROM base:1\nADD ["http://x", "/x"]', "plain paths"),
        ("FROM base:1\nADD --checksum=x y /x", "plain paths"),
        ("FROM base:1\nCOPY --from=evil:1 / /", "no earlier stage"),
        ("FROM base:1\nCOPY --from=0 / /", "no earlier stage"),
        ("FROM base:1 AS a\nCOPY --from=a / /", "no earlier stage"),
        ("FROM base:1\nARG S=evil\nCOPY --from=$S / /", "--from=STAGE"),
        ("FROM base:1\nCOPY --chown=1 --link x y", "--from=STAGE"),
        ("FROM base:1\nCOPY \\\n--from=evil / /", "no earlier stage"),
        ("FROM base:1\nONBUILD ADD http://x /x", "no instruction 'ONBUILD'"),
        ("FROM base:1\nRUN --mount=type=bind,from=evil x", "no options"),
        ("# escape=`\nFROM base:1", "escape character"),
        ("FROM base:1\nRUN a\rFROM evil", "control character"),
        ("FROM base:1\nRUN a\x0bb", "control character"),
        ("FROM base:1\nRUN <<E\nADD http://x /x\nE", "plain paths"),
        ("FROM base:1 AS ../x", "a stage is named"),
        ("FROM base:1\n" + "#" * (1 << 20), "at most"),
    ],
)
def test_what_may_fetch_is_refused(lines: str, says: str) -> None:
    with pytest.raises(ImageError, match=says):
        rewrite(lines, _find)


_WORDS = st.sampled_from(
    [
        "FROM",
        "from",
        "base:1",
        "evil",
        "ADD",
        "COPY",
        "--from=evil",
        "http://x",
        "RUN",
        "ARG",
        "$A",
        "ONBUILD",
    ]
) | st.sampled_from(
    ["scratch", "AS", "a", "0", "--", "<<E", "#", "\\", "\\\n", "\n", " ", "\t", "\r\n", "\\ \n"]
)


@given(st.lists(_WORDS, max_size=30).map("".join))
def test_no_text_makes_the_daemon_fetch(text: str) -> None:
    try:
        lines = rewrite(text, _find).splitlines()
    except ImageError:
        return
    stages: list[str] = []
    for line in lines:
        name, _, rest = line.partition(" ")
        words = rest.split()
        assert name.isupper()
        assert not line.endswith("\\") or line.endswith("\\\\")
        if name == "FROM":
            assert words[0] in {"sha256:feed", "scratch", *stages}
            stages += words[2:]
        if name == "ADD":
            assert ":" not in rest
        if name == "COPY" and words and words[0] == "--from=evil":
            assert "evil" in stages
