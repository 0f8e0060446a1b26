"""What the agent's tools show: hits one a line, pages in pieces. Pages are hostile: they stay below a line of ours."""

from __future__ import annotations

from collections.abc import Sequence

from envs.search.corpus import Document, one_line
from envs.search.retrieval import Hit
from envs.search.worlds import SNIPPET_CHARS
from tools.errors import ToolError

PAGE_CHARS = 3000
"""What one `open` shows."""
NOTHING = "no page matches; try other words"


def hits_text(hits: Sequence[Hit]) -> str:
    """One line a hit: `[d12] Title: the first 300 characters ...`."""
    return "\n".join(_hit_line(hit.document) for hit in hits) or NOTHING


def snippet(document: Document) -> str:
    """What a search result shows of a page, on one line."""
    return one_line(document.text[:SNIPPET_CHARS])


def _hit_line(document: Document) -> str:
    more = f" ... ({len(document.text)} characters)" if len(document.text) > SNIPPET_CHARS else ""
    return f"[{document.id}] {document.title or '(no title)'}: {snippet(document)}{more}"


def page_piece(document: Document, offset: int) -> str:
    """The characters of a page from `offset`.

    Raises:
        ToolError: the page ends before.
    """
    if offset and offset >= len(document.text):
        raise ToolError(f"offset must be below {len(document.text)}, the length of the page, got {offset}")
    return document.text[offset : offset + PAGE_CHARS]


def page_text(document: Document, offset: int) -> str:
    """A line that says which piece of which page it is, then the piece.

    Raises:
        ToolError: the page ends before `offset`.
    """
    piece = page_piece(document, offset)
    end = offset + len(piece)
    rest = f"next offset={end}" if end < len(document.text) else "the end"
    where = f"characters {offset} to {end} of {len(document.text)}; {rest}"
    return f"[{document.id}] {document.title or '(no title)'}, {where}\n{piece}"
