"""Question files of the field: HotpotQA, NQ-open, FlashRAG, and the parquet files of verl."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from envs.formats import BadRow, Format, collect, read_records, required
from envs.search.corpus import context_documents
from envs.search.grading import usable
from envs.search.tasks import ENV_ID, prompt_of
from envs.taskrows import Record, TaskFile
from envs.tasksets import task_id
from envs.types import Split, Task

MAX_QUESTION_CHARS = 20_000
MAX_ROWS = 5_000_000
_MARK = "Question:"

Convert = Callable[[Mapping[str, Any], Path, Split], Task]


def hotpotqa(row: Mapping[str, Any], path: Path, split: Split) -> Task:
    """A HotpotQA row; its corpus is all contexts of its file together."""
    documents = context_documents(row)
    facts = row.get("supporting_facts", [])
    titles = _titles(facts)
    support = [d.id for d in documents if d.title in titles]
    data = {"corpus": str(path.resolve())}
    extra = {"path": support} if support else {}
    kept = {key: row[key] for key in ("_id", "id", "type", "level") if isinstance(row.get(key), str)}
    return _task(
        required(row, "question"), [required(row, "answer")], split, data=data, extra=extra, metadata=kept
    )


def nq_open(row: Mapping[str, Any], path: Path, split: Split) -> Task:
    """A row of NQ-open: `{question, answer: [...]}`."""
    del path
    return _task(required(row, "question"), required(row, "answer", list), split)


def flashrag(row: Mapping[str, Any], path: Path, split: Split) -> Task:
    """A row of FlashRAG: `{id, question, golden_answers: [...]}`."""
    del path
    kept = {"row": str(row["id"])} if isinstance(row.get("id"), str | int) else {}
    return _task(required(row, "question"), required(row, "golden_answers", list), split, metadata=kept)


def verl(row: Mapping[str, Any], path: Path, split: Split) -> Task:
    """A row of verl: `{data_source, prompt, reward_model: {ground_truth: {target}}}`; without its prompt's rules."""
    del path
    truth = required(required(row, "reward_model", dict), "ground_truth", (dict, str, list))
    target = truth.get("target") if isinstance(truth, dict) else truth
    golds = [target] if isinstance(target, str) else target
    if not isinstance(golds, list):
        raise BadRow("reward_model", "the target is a text or a list of texts")
    question = row.get("question")
    if not isinstance(question, str):
        messages = required(row, "prompt", list)
        last = messages[-1].get("content") if messages and isinstance(messages[-1], dict) else None
        if not isinstance(last, str):
            raise BadRow("prompt", "the last message has text")
        question = last.rpartition(_MARK)[2].strip()
    return _task(question, golds, split, metadata={"data_source": str(row.get("data_source", ""))[:100]})


def recognised(path: str | os.PathLike[str], format: str) -> str:
    """The format given, else `verl` for a parquet file, else empty: to be recognised by content."""
    return format or ("verl" if Path(path).suffix == ".parquet" else "")


def _reader(convert: Convert) -> Callable[[Path, Split], TaskFile]:
    def read(path: Path, split: Split) -> TaskFile:
        records = _parquet(path) if path.suffix == ".parquet" else read_records(path)
        return collect(path, records, lambda row: [convert(row, path, split)])

    return read


FORMATS: Mapping[str, Format] = {
    "hotpotqa": Format(read=_reader(hotpotqa), fields=frozenset({"question", "answer", "context"})),
    "nq-open": Format(read=_reader(nq_open), fields=frozenset({"question", "answer"})),
    "flashrag": Format(read=_reader(flashrag), fields=frozenset({"question", "golden_answers"})),
    "verl": Format(read=_reader(verl), fields=frozenset({"data_source", "prompt", "reward_model"})),
}


def _task(
    question: str,
    golds: Iterable[Any],
    split: Split,
    *,
    data: Mapping[str, Any] | None = None,
    extra: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Task:
    question = question.strip()
    if not question or len(question) > MAX_QUESTION_CHARS:
        raise BadRow("question", f"a question has 1 to {MAX_QUESTION_CHARS} characters, got {len(question)}")
    texts = list(golds)
    if not all(isinstance(gold, str) for gold in texts):
        raise BadRow("answer", f"golds are texts, got {texts!r:.60}")
    found = list(dict.fromkeys(usable(texts)))
    if not found:
        raise BadRow(
            "answer", f"a gold is needed that is more than punctuation and articles, got {texts!r:.60}"
        )
    try:
        question.encode()
    except UnicodeEncodeError as error:
        raise BadRow("question", "the question holds a lone surrogate, which is no character") from error
    prompt = prompt_of(question, verbose=True)
    answer = {"golds": found, **(extra or {})}
    return Task(
        id=task_id(ENV_ID, prompt, data or {}, answer),
        env=ENV_ID,
        prompt=prompt,
        data=data or {},
        answer=answer,
        split=split,
        metadata=metadata or {},
    )


def _titles(facts: Any) -> set[str]:
    if isinstance(facts, dict):
        named = facts.get("title", [])
    else:
        named = [f[0] for f in facts if isinstance(f, list) and f] if isinstance(facts, list) else []
    return {title for title in named if isinstance(title, str)} if isinstance(named, list) else set()


def _parquet(path: Path) -> Iterator[Record]:
    """The rows of a parquet file.

    Raises:
        ValueError: pyarrow is not installed, or the file is no parquet file, or has too many rows.
    """
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "pyarrow":
            raise
        raise ValueError("parquet files need pyarrow: pip install pyarrow") from None
    try:
        with path.open("rb") as file:
            table = ParquetFile(file)
            if table.metadata.num_rows > MAX_ROWS:
                raise ValueError(f"{path} has more than {MAX_ROWS} rows: split it")
            number = 0
            for batch in table.iter_batches(batch_size=256):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except ArrowException as error:
        raise ValueError(f"{path} is not a parquet file that can be read: {error}") from error
