"""Documents and corpora: one document a line, or the contexts of a HotpotQA file.

{"id": "0", "contents": "\\"Title\\"\\ntext"}
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs.formats import BadRow, read_records, required
from envs.snapshots import canonical_json
from envs.taskrows import RowError

MAX_DOCUMENT_CHARS = 1_000_000
MAX_TITLE_CHARS = 300
MAX_ID_CHARS = 200
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Document:
    """One page. Its text is not to be trusted: anybody may have written it."""

    id: str
    title: str
    text: str

    @property
    def contents(self) -> str:
        """Title and text as in Search-R1: `"Title"\\ntext`."""
        return f'"{self.title}"\n{self.text}'


class Corpus:
    """Documents in order, by id; read-only and shared by every episode over it."""

    def __init__(self, documents: Iterable[Document], errors: Iterable[RowError] = ()) -> None:
        """Keep the documents, and what was wrong with other rows of their file.

        Raises:
            ValueError: there is none, or two share an id.
        """
        self.documents, self.errors = tuple(documents), tuple(errors)
        self.by_id: Mapping[str, Document] = {d.id: d for d in self.documents}
        if not self.documents:
            raise ValueError("a corpus has at least one document, this one has none")
        if len(self.by_id) != len(self.documents):
            raise ValueError("the ids of a corpus are unique, two documents share one")
        digest = hashlib.blake2b(digest_size=16)
        for each in self.documents:
            digest.update(canonical_json([each.id, each.title, each.text]).encode())
        self.digest = digest.hexdigest()
        """32 hex digits, equal for equal documents in equal order."""


def read_document(row: Mapping[str, Any]) -> Document:
    """The document of a row: `id` and `contents`, or `id`, `title` and `text`.

    Raises:
        BadRow: the row is none.
    """
    id = row.get("id")
    if isinstance(id, int) and not isinstance(id, bool):
        id = str(id)
    if not (isinstance(id, str) and id and len(id) <= MAX_ID_CHARS and id == _clean(id)):
        raise BadRow("id", f"an id is text of 1 to {MAX_ID_CHARS} characters or a number, got {id!r:.60}")
    if "contents" in row:
        title, text = split_contents(required(row, "contents"))
    else:
        title, text = required(row, "title"), required(row, "text")
    if len(text) > MAX_DOCUMENT_CHARS:
        raise BadRow("contents", f"a document has at most {MAX_DOCUMENT_CHARS} characters, got {len(text)}")
    return Document(id, one_line(title)[:MAX_TITLE_CHARS], _clean(text))


def split_contents(contents: str) -> tuple[str, str]:
    """Title and text of `"Title"\\ntext`; a text without such a first line has no title."""
    first, _, rest = contents.partition("\n")
    first = first.strip()
    if len(first) >= 2 and first.startswith('"') and first.endswith('"'):
        return first[1:-1], rest.strip()
    return "", contents.strip()


def read_corpus(path: str | os.PathLike[str]) -> Corpus:
    """Read a corpus (JSONL or a JSON list, gzip by suffix), or a HotpotQA file as the corpus of all its contexts.

    Raises:
        OSError: the file cannot be read, or is no regular file.
        ValueError: it holds no document.
    """
    where = Path(path)
    if not stat.S_ISREG(where.stat().st_mode):
        raise OSError(f"a corpus is a regular file, {str(where)!r} is none")
    documents: dict[str, Document] = {}
    errors: list[RowError] = []
    for line, record in read_records(where):
        try:
            if isinstance(record, BadRow):
                raise record
            if "context" in record and "contents" not in record:
                documents.update((d.id, d) for d in context_documents(record))
                continue
            document = read_document(record)
            if document.id in documents:
                raise BadRow("id", f"ids are unique, {document.id!r:.60} was already there")
            documents[document.id] = document
        except BadRow as error:
            errors.append(RowError(file=str(where), line=line, field=error.field, message=str(error)))
    if not documents:
        why = f"; the first bad row: {errors[0]}" if errors else ""
        raise ValueError(f"{where} holds no document: one JSON object a line with id and contents{why}")
    return Corpus(documents.values(), errors)


def context_documents(row: Mapping[str, Any]) -> list[Document]:
    """The paragraphs of a HotpotQA row; equal paragraphs of several rows have equal ids.

    Raises:
        BadRow: the context is malformed.
    """
    found = []
    for title, sentences in context_pairs(row):
        text = _clean("".join(sentences).strip())[:MAX_DOCUMENT_CHARS]
        name = one_line(title)[:MAX_TITLE_CHARS]
        id = hashlib.blake2b(canonical_json([name, text]).encode(), digest_size=6).hexdigest()
        found.append(Document(id, name, text))
    return found


def context_pairs(row: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Title and sentences of each paragraph, of the original file or of its column-wise variant.

    Raises:
        BadRow: the context is malformed.
    """
    context = required(row, "context", (list, dict))
    if isinstance(context, dict):
        titles, texts = context.get("title"), context.get("sentences")
        if not (isinstance(titles, list) and isinstance(texts, list) and len(titles) == len(texts)):
            raise BadRow("context", "a context has the lists title and sentences of equal length")
        context = [list(pair) for pair in zip(titles, texts, strict=True)]
    for pair in context:
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)):
            raise BadRow("context", f"a paragraph is [title, [sentence, ...]], got {pair!r:.60}")
        if not (isinstance(pair[1], list) and all(isinstance(s, str) for s in pair[1])):
            raise BadRow("context", f"the sentences of {pair[0]!r:.40} are a list of texts")
        yield pair[0], pair[1]


def one_line(text: str) -> str:
    """The text on one line without control characters, so that a page cannot forge a line of ours."""
    return " ".join(_clean(text).split())


def _clean(text: str) -> str:
    return _CONTROL.sub(" ", text.replace("\r\n", "\n"))
