"""The environment `search-v1`: search a corpus, open pages, hand in a short answer."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from envs.base import PolicySpec
from envs.errors import TaskError
from envs.formats import Format
from envs.search.corpus import Document
from envs.search.formats import FORMATS, recognised
from envs.search.grading import METRICS, Conduct, FormatRewards, Metric, contains, grade, usable
from envs.search.policies import policies, submit
from envs.search.retrieval import Retriever
from envs.search.sources import open_corpus, retriever_of
from envs.search.tasks import ENV_ID, generate
from envs.search.tools import hits_text, page_piece, page_text, snippet
from envs.snapshots import canonical_json
from envs.taskrows import TaskFile
from envs.tool_env import ToolEnv
from envs.types import Reward, Split, Task
from tools import values
from tools.errors import ToolError
from tools.schema import tool

MAX_QUERY_CHARS = 1000
MAX_ANSWER_CHARS = 500
MAX_CALLS = 48
"""Searches and openings of one episode."""
MAX_HITS = 10


class SearchEnv(ToolEnv):
    """Answer a question from a corpus; reward 1 for an exact match with a gold answer.

    The corpus is read-only and shared, so the whole state of an episode is which pages it was shown: snapshots are
    copies of that, and `state_key` names it.
    """

    id: ClassVar[str] = ENV_ID
    max_turns: int = 16
    levels: ClassVar[tuple[int, ...]] = (0, 1, 2, 3, 4)
    formats: ClassVar[Mapping[str, Format]] = FORMATS

    _retriever: Retriever
    _golds: tuple[str, ...]
    _seen: Mapping[str, Document]
    """What searches have shown, by id: only these can be opened."""
    _shown: frozenset[str]
    """Hashes of every text shown."""
    _answer: str | None
    _served: int
    _calls: int
    _retrieved: bool

    def __init__(
        self,
        *,
        corpus: str | os.PathLike[str] | Retriever | None = None,
        vectors: str = "",
        encoder: str = "",
        metric: Metric = "em",
        format_rewards: FormatRewards | None = None,
        **base: Any,
    ) -> None:
        """Make an environment; `base` goes to `Env`.

        Args:
            corpus: a file, the address of a server, or a `Retriever`, searched in place of what a task names.
            vectors: a `.npy` file for dense retrieval over the file.
            encoder: `package.module:function` from texts to vectors.
            metric: what `correct` is: em, sub_em or f1.
            format_rewards: what form is worth beside a right answer; nothing by default.

        Raises:
            OSError: the file cannot be read.
            ValueError: the settings are wrong.
        """
        super().__init__(**base)
        if metric not in METRICS:
            raise ValueError(f"a metric is one of {', '.join(METRICS)}, got {metric!r}")
        self.metric: Metric = metric
        self.format_rewards = format_rewards or FormatRewards()
        given = corpus if isinstance(corpus, Retriever) or corpus is None else os.fspath(corpus)
        self._given = (
            open_corpus(given, vectors=vectors, encoder=encoder) if isinstance(given, str) else given
        )

    @classmethod
    def tasks(cls, split: Split = "train", n: int = 1, seed: int = 0, **options: Any) -> list[Task]:
        """`n` generated tasks; options: `level` (0 to 4, default 0), `verbose` (a system message with guidance)."""
        unknown = sorted(set(options) - {"level", "verbose"})
        if unknown:
            raise ValueError(f"the options of search-v1 tasks are level and verbose, got {unknown[0]!r}")
        return generate(split, n, seed, **options)

    @classmethod
    def read_tasks(cls, path: str | os.PathLike[str], *, format: str = "", split: Split = "test") -> TaskFile:
        """As `Env.read_tasks`; a parquet file is known by its name."""
        return super().read_tasks(path, format=recognised(path, format), split=split)

    @classmethod
    def policies(cls) -> dict[str, PolicySpec]:
        """Scripted policies by name: gold, sloppy, noop and attacks."""
        return policies()

    @classmethod
    def trivial_policies(cls, tasks: Sequence[Task]) -> dict[str, PolicySpec]:
        """Constant answers, handed in without a search."""
        return submit([gold for task in tasks for gold in _golds(task)[:1]])

    @classmethod
    def split_keys(cls, task: Task) -> Mapping[str, str]:
        """The corpus of a generated task and its question without the name; for others the prompt."""
        if "digest" in task.data:
            return {
                "world": str(task.data["digest"]),
                "masked prompt": str(task.metadata.get("masked", task.id)),
            }
        return {"prompt": canonical_json(list(task.prompt))}

    # ------------------------------------------------------------------------------------------------ tools

    @tool
    def search(self, query: str, top_k: Annotated[int, Field(ge=1, le=MAX_HITS)] = 3) -> str:
        """Find pages; shows the id, title and first lines of each.

        Args:
            query: words to look for.
            top_k: how many pages to list, 1 to 10.
        """
        if len(query) > MAX_QUERY_CHARS:
            raise ToolError(f"a query has at most {MAX_QUERY_CHARS} characters, got {len(query)}")
        self._count()
        (hits,) = self._retriever.retrieve([values.well_formed(query)], top_k)
        self._seen = {**self._seen, **{hit.document.id: hit.document for hit in hits}}
        self._note(f"{hit.document.title}\n{snippet(hit.document)}" for hit in hits)
        return self._serve(hits_text(hits))

    @tool(name="open")
    def open_page(self, doc_id: str, offset: Annotated[int, Field(ge=0)] = 0) -> str:
        """Show a page that a search has listed.

        Args:
            doc_id: its id, such as "d12".
            offset: first character to show.
        """
        document = self._seen.get(doc_id.strip().removeprefix("[").removesuffix("]"))
        if document is None:
            raise ToolError(f"doc_id must be one that a search has listed, got {values.shown(doc_id)}")
        self._count()
        text = page_text(document, offset)
        self._note([f"{document.title}\n{page_piece(document, offset)}"])
        return self._serve(text)

    @tool(name="finish")
    def hand_in(self, answer: str) -> str:
        """Hand in the answer and end the episode.

        Args:
            answer: a name or a few words.
        """
        if len(answer) > MAX_ANSWER_CHARS:
            raise ToolError(f"an answer has at most {MAX_ANSWER_CHARS} characters, got {len(answer)}")
        self._answer = answer
        self.finish()
        return self._serve("submitted")

    def _count(self) -> None:
        if self._calls >= MAX_CALLS:
            raise ToolError(f"an episode has at most {MAX_CALLS} searches and openings: call finish")
        self._calls += 1

    def _serve(self, text: str) -> str:
        self._served += 1
        digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()
        self._shown |= {digest}
        return text

    def _note(self, texts: Iterable[str]) -> None:
        """Track evidence from what the corpus gave, before anything of the model's is near it."""
        if not self._retrieved:
            self._retrieved = any(contains(text, self._golds) for text in texts)

    # ------------------------------------------------------------------------------------------ the episode

    def setup(self, task: Task) -> None:
        """Find the corpus; it is loaded once per process."""
        self._retriever = retriever_of(task.data, self._given)
        self._golds = usable(_golds(task))
        if not self._golds:
            raise TaskError(
                "the answer of a search-v1 task has at least one gold that is more than punctuation"
            )
        self._seen, self._shown = {}, frozenset()
        self._answer, self._served, self._calls, self._retrieved = None, 0, 0, False

    def grade(self) -> Reward:
        """Compare the answer with the golds; form is judged from what was served, not from text."""
        path = self.task.answer.get("path", [])
        calls = [action.get("tool_calls", []) for action in self._actions]
        clean = all(calls) and not any(action.get("parse_errors") for action in self._actions)
        conduct = Conduct(
            answer=self._answer,
            well_formed=clean and self._served == sum(map(len, calls)) and self._answer is not None,
            retrieved=self._retrieved,
            support=sum(id in self._seen for id in path) / len(path) if path else 0.0,
        )
        return grade(conduct, self._golds, self.metric, self.format_rewards)

    def state_key(self) -> str:
        """Names what the agent knows: the task and the set of everything it was shown."""
        text = "\n".join([self.task.id, *sorted(self._shown)])
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def copy_state(self) -> tuple[Any, ...]:
        """What the agent has seen and handed in; the corpus is shared and cannot change."""
        return self._seen, self._shown, self._answer, self._served, self._calls, self._retrieved

    def load_state(self, state: tuple[Any, ...]) -> None:
        """Continue from `copy_state`."""
        self.setup(self.task)
        self._seen, self._shown, self._answer, self._served, self._calls, self._retrieved = state


def _golds(task: Task) -> tuple[str, ...]:
    answer = task.answer
    golds = answer.get("golds") if isinstance(answer, Mapping) else None
    if not isinstance(golds, list) or not all(isinstance(gold, str) for gold in golds):
        raise TaskError("the answer of a search-v1 task is an object with a list of texts under 'golds'")
    return tuple(golds)
