"""The corpus server over real HTTP, and what a client makes of servers that answer garbage."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs import registry
from envs.checker.subject import play
from envs.errors import FaultError
from envs.policies import ScriptedPolicy, call
from envs.search.bm25 import Bm25
from envs.search.corpus import read_corpus
from envs.search.env import SearchEnv
from envs.search.remote import Remote, read_answer
from envs.search.server import ServerSettings, running
from tests.envs.search.samples import DOCUMENTS, NQ_OPEN, write


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write(tmp_path_factory.mktemp("corpus") / "c.jsonl", DOCUMENTS))


@pytest.fixture(scope="module")
def address(corpus: str) -> Iterator[str]:
    with running(Bm25(read_corpus(corpus)), ServerSettings(port=0)) as where:
        yield where


def test_it_speaks_search_r1s_protocol(address: str) -> None:
    asked = {"queries": ["who designed Lumen Bridge", "Orra"], "topk": 2, "return_scores": True}
    result = httpx.post(f"{address}/retrieve", json=asked).json()["result"]
    assert [hits[0]["document"]["id"] for hits in result] == ["0", "3"]
    assert result[0][0]["document"]["contents"].startswith('"Lumen Bridge"\n')
    assert result[0][0]["score"] > 0
    plain = httpx.post(f"{address}/retrieve", json={"queries": ["Orra"]}).json()["result"]
    assert plain[0][0] == {"id": "3", "contents": '"Orra"\nThe Orra rises in the hills of Ilmen.'}


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"{", 400, "the body"),
        (b'{"queries": []}', 400, "queries"),
        (b'{"queries": ["a"], "topk": 101}', 400, "topk"),
        (b'{"queries": [1]}', 400, "queries.0"),
        (json.dumps({"queries": ["x" * 10_001]}).encode(), 400, "at most 10000"),
        (b" " * (4 * 2**20 + 1), 413, "at most"),
    ],
)
def test_unusable_requests_are_told_why(address: str, body: bytes, status: int, says: str) -> None:
    reply = httpx.post(f"{address}/retrieve", content=body)
    assert (reply.status_code, says in reply.json()["detail"]) == (status, True)


def test_there_is_nothing_else_to_ask(address: str) -> None:
    for path in ("/", "/docs", "/openapi.json", "/reset", "/answers"):
        assert httpx.get(address + path).status_code == 404


def test_an_episode_over_a_server_is_that_in_process(address: str, corpus: str, tmp_path: Path) -> None:
    (task, _) = SearchEnv.read_tasks(write(tmp_path / "q.jsonl", NQ_OPEN)).tasks
    script = [
        call("search", query="Lumen Bridge designed"),
        call("open", doc_id="0"),
        call("finish", answer="Tessa Vark"),
    ]
    link = Remote(address)
    there = play(SearchEnv(corpus=link), ScriptedPolicy(list(script)), task).lines()
    link.close()
    assert there == play(SearchEnv(corpus=corpus), ScriptedPolicy(list(script)), task).lines()
    assert "[0] Lumen Bridge" in "\n".join(there)


def test_a_token_is_needed_where_others_can_ask(corpus: str) -> None:
    with pytest.raises(ValueError, match="needs a token"):
        ServerSettings(host="0.0.0.0")
    settings = ServerSettings(port=0, tokens={"me": "t" * 32})
    with running(Bm25(read_corpus(corpus)), settings) as where:
        assert httpx.post(f"{where}/retrieve", json={"queries": ["a"]}).status_code == 401
        assert httpx.get(f"{where}/health").status_code == 401
        link = Remote(where, token="t" * 32)
        (hits,) = link.retrieve(["Orra"], 1)
        assert hits[0].document.id == "3"
        link.close()


def test_a_server_that_is_down_is_a_fault_and_no_observation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envs.search.remote._PAUSE_S", 0.0)
    (task,) = registry.spec("search-v1").load().tasks("test", 1, 0)
    env = SearchEnv(corpus="http://127.0.0.1:9")
    env.reset(options={"task": task})
    with pytest.raises(FaultError, match="no usable answer in 3 attempts") as caught:
        env.step(call("search", query="a"))
    assert (caught.value.fault.kind, caught.value.fault.retryable) == ("environment", True)
    env.close()


BAD: list[Any] = [
    {"result": []},
    {"result": [[{"id": "0", "contents": "a"}] * 2]},
    {"result": [[{"id": "0"}]]},
    {"result": [[{"document": {"id": "0", "contents": "a"}, "score": "1"}]]},
    {"result": [[{"document": {"id": "0", "contents": "a"}, "score": 10**400}]]},
    {"result": [[{"id": str(i), "contents": "a"} for i in range(4)]]},
    [],
    "x",
]


@pytest.mark.parametrize("answer", BAD)
def test_garbage_is_no_answer(answer: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_answer(json.dumps(answer).encode(), 1, 3)


@given(st.binary(max_size=60) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_any_bytes_are_an_answer_or_a_value_error(raw: bytes | str) -> None:
    data = raw if isinstance(raw, bytes) else raw.encode()
    with contextlib.suppress(ValueError):
        assert len(read_answer(data, 1, 3)) == 1


@pytest.mark.parametrize("where", ["ftp://x", "http://me:pw@x/", "http://", "x", "http://x?a=1"])
def test_an_address_is_plain(where: str) -> None:
    with pytest.raises(ValueError, match=r"corpus server is|no address"):
        Remote(where)
