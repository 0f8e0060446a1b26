"""The tiny model's tokenizer loses nothing and spells what is rare; its weights depend on the seed alone."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from agent_rl.learner.tiny import END, PAD, ROLES, build_tiny, build_tokenizer

TEXTS = [
    f"cost of orders where town = '{value}'\ndescribe(\"orders\")\nid int, place text, cost int\n"
    f"submit(\"SELECT cost FROM orders WHERE place = '{value}'\")"
    for value in ("kavo", "mibe", "zan", "pulet")
]
TOKENIZER = build_tokenizer(TEXTS, min_count=3)


def pieces(text: str) -> list[str]:
    return [TOKENIZER.decode([i]) for i in TOKENIZER.encode(text)]


def test_shared_words_are_tokens_and_values_are_spelled() -> None:
    assert pieces("submit(\"SELECT cost FROM orders WHERE place = 'kavo'\")") == [
        *["submit", '("', "SELECT", " cost", " FROM", " orders", " WHERE", " place", " =", " '"],
        *["k", "a", "v", "o", "'\")"],
    ]


def test_words_come_with_and_without_a_leading_space() -> None:
    assert pieces("cost cost FROM") == ["cost", " cost", " FROM"]
    assert pieces(" describe") == [" describe"]


def test_a_value_repeated_within_one_text_stays_spelled() -> None:
    tokenizer = build_tokenizer(["kavo kavo kavo kavo", "mibe"], min_count=2)
    assert len(tokenizer.encode("kavo")) == 4


def test_digits_are_single_tokens_however_frequent() -> None:
    tokenizer = build_tokenizer(["total 1234"] * 9, min_count=2)
    assert [tokenizer.decode([i]) for i in tokenizer.encode("total 1234")] == [
        "total",
        " ",
        "1",
        "2",
        "3",
        "4",
    ]


def test_vocabulary_is_specials_bytes_and_words() -> None:
    assert TOKENIZER.convert_tokens_to_ids([PAD, END]) == [0, 1]
    assert len(build_tokenizer([], min_count=1)) == 6 + 256
    assert len(build_tokenizer(["ab ab"], min_count=1)) == 6 + 256 + 2  # "ab" and " ab"


def test_order_of_texts_does_not_matter() -> None:
    again = build_tokenizer(reversed(TEXTS), min_count=3)
    assert again.get_vocab() == TOKENIZER.get_vocab()


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_decoding_gives_back_any_text(text: str) -> None:
    ids = TOKENIZER.encode(text, add_special_tokens=False)
    assert TOKENIZER.decode(ids, skip_special_tokens=False) == text


@pytest.mark.parametrize(
    "text", ["", " ", "\n\n  x", "a\u0301 é 漢 🙂\u200d", "\x00\x07", "<|end|> <|en", "  cost ?("]
)
def test_decoding_gives_back_odd_texts(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


def test_chat_template_has_one_token_before_and_one_after_each_message() -> None:
    messages = [
        {"role": "system", "content": "x"},
        {"role": "user", "content": "cost"},
        {"role": "assistant", "content": ""},
        {"role": "tool", "content": "int"},
    ]
    ids = TOKENIZER.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    assert [TOKENIZER.decode([i]) for i in ids] == [
        *["<|system|>", "x", END, "<|user|>", "cost", END, "<|assistant|>", END, "<|tool|>", "int", END],
        "<|assistant|>",
    ]
    assert len(set(TOKENIZER.convert_tokens_to_ids([f"<|{role}|>" for role in ROLES]))) == 4


def test_a_saved_tokenizer_reads_the_same(tmp_path) -> None:  # type: ignore[no-untyped-def]
    TOKENIZER.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    text = "cost where town = 'kavo' é"
    assert again.encode(text) == TOKENIZER.encode(text)
    assert again.chat_template == TOKENIZER.chat_template
    assert (again.eos_token, again.pad_token) == (END, PAD)


def test_min_count_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="min_count must be at least 1, got 0"):
        build_tokenizer(TEXTS, min_count=0)


def test_same_seed_same_weights_and_the_global_generator_is_left_alone() -> None:
    before = torch.random.get_rng_state()
    first, second, other = (build_tiny(TOKENIZER, seed=seed, hidden_size=24, layers=2) for seed in (3, 3, 4))
    assert torch.equal(torch.random.get_rng_state(), before)
    weights = copy.deepcopy(first.state_dict())
    assert all(torch.equal(value, second.state_dict()[name]) for name, value in weights.items())
    name = "model.layers.0.mlp.up_proj.weight"
    assert not torch.equal(weights[name], other.state_dict()[name])
    assert float(weights[name].std()) == pytest.approx(0.08, rel=0.1)


def test_default_size_is_about_a_million() -> None:
    model = build_tiny(TOKENIZER, seed=0)
    count = sum(p.numel() for p in model.parameters())
    # by hand: 3 layers x (4 x 144 x 144 + 3 x 144 x 432 + 2 x 144) + vocabulary x 144 + 144
    assert count == 3 * (4 * 144**2 + 3 * 144 * 432 + 2 * 144) + len(TOKENIZER) * 144 + 144
    assert 0.8e6 < count < 1.2e6
    assert model.config._attn_implementation == "sdpa"
    assert model.dtype == torch.float32
    assert not model.training


def test_hidden_size_that_does_not_divide_is_refused_with_one_that_does() -> None:
    with pytest.raises(ValueError, match="got 100 and 6 heads; try hidden_size=108"):
        build_tiny(TOKENIZER, seed=0, hidden_size=100)


def test_building_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build_tiny(TOKENIZER, seed=0, hidden_size=24, layers=2)
