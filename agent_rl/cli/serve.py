"""`agent-rl serve`: let other processes and machines use this machine's sandboxes, environments and corpora."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

serve = typer.Typer(help="Serve others over HTTP.", no_args_is_help=True, rich_markup_mode=None)


@serve.command()
def sandbox(
    backend: Annotated[str, typer.Option(help="Where programs run: bubblewrap or docker.")] = "bubblewrap",
    host: Annotated[str, typer.Option(help="Address to listen on; other than loopback needs a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="0 picks a free one.", min=0, max=65535)] = 8700,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File of tokens, one TOKEN or NAME:TOKEN a line. Else AGENT_RL_SANDBOX_TOKEN[_FILE]."
        ),
    ] = None,
    base: Annotated[
        list[str] | None,
        typer.Option(help="NAME=WHAT: a root file system that clients may name; repeatable."),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="HOST:PORT or *.HOST:PORT that clients may let programs reach; repeatable."),
    ] = None,
    max_sandboxes: Annotated[int, typer.Option(help="Sandboxes of one client.", min=1)] = 256,
    max_execs: Annotated[int, typer.Option(help="Programs of one client, running or waiting.", min=1)] = 512,
    running: Annotated[int, typer.Option(help="Programs at once; 0: eight per processor.", min=0)] = 0,
    queued: Annotated[int, typer.Option(help="Programs that may wait.", min=1)] = 1024,
    max_timeout_s: Annotated[float, typer.Option(help="Longest deadline.", min=1)] = 600.0,
    max_memory_mib: Annotated[int, typer.Option(help="Memory of one sandbox.", min=1)] = 4096,
    max_workspace_mib: Annotated[int, typer.Option(help="Workspace of one sandbox.", min=1)] = 1024,
    lease_s: Annotated[
        float, typer.Option(help="A client silent for so long loses its sandboxes.", min=1)
    ] = 60.0,
    drain_s: Annotated[
        float, typer.Option(help="For running programs to finish after SIGTERM.", min=0.1)
    ] = 30.0,
) -> None:
    """Serve sandboxes until SIGTERM; prints its address when it is ready."""
    import dataclasses

    from sandbox.remote.serving import serve as run
    from sandbox.remote.settings import MAX_LIMITS, Settings
    from sandbox.remote.tokens import server_tokens
    from sandbox.types import MIB

    limits = dataclasses.replace(
        MAX_LIMITS,
        timeout_s=max_timeout_s,
        memory_bytes=max_memory_mib * MIB,
        workspace_bytes=max_workspace_mib * MIB,
        file_bytes=max_workspace_mib * MIB,
    )
    settings = Settings(
        host=host,
        port=port,
        backend=backend,
        bases=_bases(base or []),
        allow=tuple(allow or ()),
        tokens=server_tokens(token_file),
        max_limits=limits,
        max_sandboxes=max_sandboxes,
        max_execs=max_execs,
        queued=queued,
        lease_s=lease_s,
        drain_s=drain_s,
        **({"running": running} if running else {}),
    )
    run(settings, lambda address: print(f"serving {backend} sandboxes at {address}", flush=True))


def _bases(pairs: list[str]) -> dict[str, str]:
    bases = {}
    for pair in pairs:
        name, equals, what = pair.partition("=")
        if not (name and equals and what):
            raise ValueError(
                f"--base takes NAME=WHAT, not {pair!r}; for example --base python=python:3.12-slim"
            )
        bases[name] = what
    return bases


@serve.command()
def env(
    target: Annotated[
        str, typer.Argument(help="Environment id, package.module:Class or path/to/file.py:Class.")
    ],
    host: Annotated[str, typer.Option(help="Address to listen on; other than loopback needs a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="0 picks a free one.", min=0, max=65535)] = 8701,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File of tokens, one TOKEN or NAME:TOKEN a line. Else AGENT_RL_SANDBOX_TOKEN[_FILE]."
        ),
    ] = None,
    capacity: Annotated[int, typer.Option(help="Live episodes at once; more wait.", min=1)] = 64,
    deadline_s: Annotated[
        float, typer.Option(help="Of one reset, step, snapshot or restore.", min=0.1)
    ] = 60.0,
    answers: Annotated[bool, typer.Option(help="Hand out tasks with their answers.")] = False,
    lease_s: Annotated[
        float, typer.Option(help="A client silent for so long loses its episodes.", min=1)
    ] = 60.0,
    drain_s: Annotated[
        float, typer.Option(help="For running calls to finish after SIGTERM.", min=0.1)
    ] = 30.0,
) -> None:
    """Serve an environment until SIGTERM; `make("http://HOST:PORT")` plays it from elsewhere."""
    from envs.remote import server
    from envs.remote.settings import EnvSettings
    from sandbox.remote.tokens import server_tokens

    settings = EnvSettings(
        env=target,
        host=host,
        port=port,
        tokens=server_tokens(token_file),
        capacity=capacity,
        deadline_s=deadline_s,
        answers=answers,
        lease_s=lease_s,
        drain_s=drain_s,
    )
    server.serve(settings, lambda address: print(f"serving {target} at {address}", flush=True))


@serve.command()
def search(
    corpus: Annotated[
        Path, typer.Option(help='File of documents {"id", "contents"}, one a line, or a HotpotQA file.')
    ],
    host: Annotated[str, typer.Option(help="Address to listen on; other than loopback needs a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="0 picks a free one.", min=0, max=65535)] = 8702,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File of tokens, one TOKEN or NAME:TOKEN a line. Else AGENT_RL_SEARCH_TOKEN[_FILE]."
        ),
    ] = None,
    topk: Annotated[int, typer.Option(help="Documents for requests that name no number.", min=1)] = 3,
    vectors: Annotated[str, typer.Option(help="A .npy file of the documents' vectors: search by them.")] = "",
    encoder: Annotated[str, typer.Option(help="package.module:function from texts to vectors.")] = "",
) -> None:
    """Serve a corpus (POST /retrieve, as Search-R1) until SIGTERM; prints its address when it is ready."""
    from envs.search.server import ServerSettings
    from envs.search.server import serve as run
    from envs.search.sources import open_corpus
    from envs.search.tokens import server_tokens

    settings = ServerSettings(host=host, port=port, tokens=server_tokens(token_file), topk=topk)
    retriever = open_corpus(str(corpus), vectors=vectors, encoder=encoder)
    found = getattr(retriever, "corpus", None)
    for error in found.errors[:20] if found is not None else ():
        print(error, file=sys.stderr)
    run(retriever, settings, lambda address: print(f"serving {corpus} at {address}/retrieve", flush=True))


@serve.command()
def mcp(
    target: Annotated[
        str, typer.Argument(help="Environment id, package.module:Class or path/to/file.py:Class.")
    ],
    option: Annotated[list[str] | None, typer.Option(help="Task options such as level=2.")] = None,
    split: Annotated[str, typer.Option(help="train, validation or test.")] = "test",
    seed: Annotated[int, typer.Option()] = 0,
    out: Annotated[
        Path | None, typer.Option(help="File that gets one line of JSON: task, reward, stop.")
    ] = None,
) -> None:
    """Serve one episode's tools over standard streams (Model Context Protocol); the reward stays here."""
    from agent_rl.cli.evaluate import _options
    from envs import mcp_server
    from envs.registry import make, spec

    (task,) = spec(target).load().tasks(split, 1, seed, **_options(option or []))  # type: ignore[arg-type]

    def ended(reward: float, stop: str) -> None:
        line = json.dumps({"task": task.id, "reward": reward, "stop": stop})
        print(line, file=sys.stderr, flush=True)
        if out is not None:
            out.write_text(line + "\n", encoding="utf-8")

    mcp_server.serve(target, mcp_server.Episode(make(target), task, ended))
