from __future__ import annotations

import copy
import resource
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from agent_rl.batching import build
from agent_rl.learner import Learner, LearnerConfig
from agent_rl.losses import LossConfig, make
from agent_rl.types import Annotations, Batch, CreditRow, Credits, Forest
from tests.agent_rl.forests import ForestBuilder, random_credits, random_forest
from tests.agent_rl.learner.models import learner, tiny_llama

FOREST = random_forest(3)
CREDITS = random_credits(FOREST, 3)


def batch(seed: int = 3) -> Batch:
    forest = random_forest(seed)
    return build(forest, random_credits(forest, seed), Annotations(), token_budget=60)


def parameters(subject: Learner) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in subject.model.parameters()])


def imitation() -> tuple[Forest, Credits]:
    b = ForestBuilder()
    action = b.action(b.prompt([1, 2]), [3, 4, 5], demonstration=True)
    b.episode([b.turn(action)])
    return b.forest(), Credits.of([CreditRow(action, 0, 3, 1.0, 1.0, "e0", action)])


def test_supervised_steps_learn_a_demonstration() -> None:
    forest, credits = imitation()
    subject = learner(loss=LossConfig(name="supervised"), learning_rate=0.02)
    data = build(forest, credits, Annotations(), token_budget=100)
    losses = [subject.step(data)["loss"] for _ in range(30)]
    assert losses[-1] < 0.05 < losses[0]
    assert subject.version == 30


def test_metrics_of_a_step() -> None:
    subject = learner(learning_rate=1e-3)
    data = batch()
    metrics = subject.step(data)
    assert metrics["tokens"] == data.tokens
    assert metrics["trie_ratio"] == pytest.approx(data.trie_tokens / data.row_tokens)
    assert metrics["trie_ratio"] < 1
    assert 0 < metrics["entropy"] < np.log(17)
    assert metrics["grad_norm"] > 0
    assert metrics["skipped"] == 0
    assert metrics["staleness"] == 0
    assert {"loss", "clip_fraction", "approx_kl", "masked_fraction", "tokens_per_s"} <= set(metrics)
    assert subject.step(data)["staleness"] == pytest.approx(1 - metrics["masked_fraction"])


def test_metrics_do_not_depend_on_the_cut() -> None:
    whole = build(FOREST, CREDITS, Annotations(), token_budget=10_000)
    cut = build(FOREST, CREDITS, Annotations(), token_budget=20)
    assert len(cut.packs) > len(whole.packs)
    subject = learner(dtype="float64")
    assert subject.accumulate(cut) == pytest.approx(subject.accumulate(whole))


def test_equal_seeds_give_equal_weights() -> None:
    results = []
    for _ in range(2):
        subject = learner(learning_rate=1e-3)
        for seed in (3, 4, 5):
            subject.step(batch(seed))
        results.append(parameters(subject))
    assert torch.equal(results[0], results[1])


def test_warmup_rises_and_the_schedule_falls_to_0() -> None:
    subject = learner(learning_rate=1e-3, warmup_steps=4, total_steps=6)
    rates = [subject.step(batch())["learning_rate"] for _ in range(7)]
    assert rates == pytest.approx([2.5e-4, 5e-4, 4e-3 / 6, 5e-4, 2e-3 / 6, 1e-3 / 6, 0])


def test_a_gradient_that_is_not_finite_is_skipped_and_counted() -> None:
    subject = learner(learning_rate=1e-3)
    subject.step(batch())
    before = parameters(subject)
    rows = [CreditRow(*row[:3], float("nan"), *row[4:]) for row in CREDITS]
    metrics = subject.step(build(FOREST, Credits.of(rows), Annotations(), token_budget=100))
    assert metrics["skipped"] == 1
    assert (subject.version, subject.skipped_steps) == (1, 1)
    assert torch.equal(parameters(subject), before)
    assert subject.step(batch())["skipped"] == 0


def test_nothing_to_train_changes_nothing() -> None:
    subject = learner(weight_decay=0.1)
    before = parameters(subject)
    metrics = subject.step(build(Forest(), Credits(), Annotations(), token_budget=100))
    assert (metrics["skipped"], metrics["loss"], subject.version) == (1, 0, 0)
    assert torch.equal(parameters(subject), before)


def test_without_a_signal_momentum_moves_nothing() -> None:
    subject = learner(learning_rate=1e-3, weight_decay=0.1)
    subject.step(batch())
    before = parameters(subject)
    rows = [CreditRow(*row[:3], 0.0, *row[4:]) for row in CREDITS]
    metrics = subject.step(build(FOREST, Credits.of(rows), Annotations(), token_budget=100))
    assert (metrics["skipped"], metrics["grad_norm"], subject.version, subject.skipped_steps) == (1, 0, 1, 0)
    assert torch.equal(parameters(subject), before)


def test_update_makes_passes_of_mini_batches() -> None:
    subject = learner(learning_rate=1e-3, passes=2, mini_batches=2, token_budget=50)
    metrics = subject.update(FOREST, CREDITS, Annotations())
    assert metrics["steps"] == subject.version == 4
    assert subject.update(Forest(), Credits(), Annotations()) == {"steps": 0.0}


def test_update_once_is_one_step() -> None:
    one, two = learner(token_budget=50), learner(token_budget=50)
    one.update(FOREST, CREDITS, Annotations())
    two.step(build(FOREST, CREDITS, Annotations(), token_budget=50))
    assert torch.equal(parameters(one), parameters(two))


def test_scores_of_model_and_reference() -> None:
    model = tiny_llama(1)
    reference = tiny_llama(2)
    subject = Learner(model, LearnerConfig(), make(LossConfig()), reference_model=reference)
    subject.step(batch())
    notes = subject.score(FOREST, {"proximal_logprobs", "reference_logprobs"})
    assert notes.proximal_version == 1
    swapped = Learner(tiny_llama(2), LearnerConfig(), make(LossConfig())).score(FOREST, ["proximal_logprobs"])
    for node, values in notes.arrays["reference_logprobs"].items():
        assert values.dtype == np.float32
        assert values == pytest.approx(swapped.arrays["proximal_logprobs"][node], abs=1e-6)
        assert values != pytest.approx(notes.arrays["proximal_logprobs"][node], abs=1e-3)
    assert not any(p.requires_grad for p in reference.parameters())
    assert subject.score(FOREST, frozenset()).arrays == {}


def test_scores_of_some_nodes_and_of_trainable_ones_only() -> None:
    b = ForestBuilder()
    root = b.prompt([1])
    wanted, other = b.action(root, [2, 3]), b.action(root, [4])
    b.action(root, [5], demonstration=True)
    b.action(root, [6], temperature=0.0)
    b.action(root, [7], policy="critic")
    subject = learner()
    assert set(subject.score(b.forest(), ["proximal_logprobs"]).arrays["proximal_logprobs"]) == {
        wanted,
        other,
    }
    some = subject.score(b.forest(), ["proximal_logprobs"], nodes=[wanted])
    assert set(some.arrays["proximal_logprobs"]) == {wanted}
    critic = subject.score(b.forest(), ["proximal_logprobs"], policy="critic")
    assert len(critic.arrays["proximal_logprobs"]) == 1


def test_scores_that_cannot_be_computed_are_refused() -> None:
    with pytest.raises(ValueError, match="values was asked for"):
        learner().score(FOREST, ["values"])
    with pytest.raises(ValueError, match="need a reference model"):
        learner().score(FOREST, ["reference_logprobs"])


def test_on_policy_scores_make_every_ratio_1() -> None:
    subject = learner()
    data = build(FOREST, CREDITS, subject.score(FOREST, ["proximal_logprobs"]), token_budget=100)
    metrics = subject.step(data)
    assert metrics["ratio"] == pytest.approx(1 - metrics["masked_fraction"], abs=1e-5)
    assert metrics["clip_fraction"] == 0


def test_a_resumed_learner_reaches_the_same_weights(tmp_path: Path) -> None:
    whole = learner(learning_rate=1e-3, warmup_steps=5)
    for seed in (3, 4):
        whole.step(batch(seed))
    whole.save(tmp_path / "checkpoint")
    drawn = torch.rand(3)
    resumed = learner(9, learning_rate=1e-3, warmup_steps=5)
    resumed.load(tmp_path / "checkpoint")
    assert torch.equal(torch.rand(3), drawn)
    assert resumed.version == 2
    assert torch.equal(parameters(whole), parameters(resumed))
    for subject in (whole, resumed):
        subject.step(batch(5))
    assert torch.equal(parameters(whole), parameters(resumed))


@pytest.mark.parametrize("tied", [False, True])
def test_a_checkpoint_is_a_transformers_model(tmp_path: Path, tied: bool) -> None:
    subject = Learner(tiny_llama(tie_word_embeddings=tied), LearnerConfig(), make(LossConfig()))
    subject.step(batch())
    subject.save(tmp_path / "model")
    subject.save(tmp_path / "model")  # replacing itself
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    for name, tensor in loaded.state_dict().items():
        assert torch.equal(tensor, subject.weights()[name])
    again = Learner(tiny_llama(7, tie_word_embeddings=tied), LearnerConfig(), make(LossConfig()))
    again.load(tmp_path / "model")
    assert torch.equal(parameters(again), parameters(subject))


def test_a_full_disk_leaves_the_older_checkpoint(tmp_path: Path) -> None:
    subject = learner(learning_rate=1e-3)
    subject.save(tmp_path / "checkpoint")
    subject.step(batch())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(OSError, match=r"[Ff]ile|write|space"):
            subject.save(tmp_path / "checkpoint")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint"]
    subject.load(tmp_path / "checkpoint")
    assert subject.version == 0


def test_a_crash_between_the_renames_loses_nothing(tmp_path: Path) -> None:
    subject = learner()
    subject.save(tmp_path / "checkpoint")
    (tmp_path / "checkpoint").rename(tmp_path / ".checkpoint.old")
    subject.version = 5
    subject.load(tmp_path / "checkpoint")
    assert subject.version == 0
    subject.save(tmp_path / "checkpoint")
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint"]


def test_a_missing_or_foreign_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is not one"):
        learner().load(tmp_path / "nothing")
    learner().save(tmp_path / "checkpoint")
    other = tiny_llama()
    other.resize_token_embeddings(20, mean_resizing=False)
    with pytest.raises(ValueError, match="another model"):
        Learner(other, LearnerConfig(), make(LossConfig())).load(tmp_path / "checkpoint")


def test_a_learner_without_parameters_to_train_is_refused() -> None:
    with pytest.raises(ValueError, match="unfreeze some"):
        Learner(tiny_llama().requires_grad_(False), LearnerConfig(), make(LossConfig()))


def test_frozen_parameters_stay() -> None:
    model = tiny_llama()
    model.model.embed_tokens.requires_grad_(False)
    before = copy.deepcopy(model.model.embed_tokens.weight)
    Learner(model, LearnerConfig(learning_rate=0.1, weight_decay=0.1), make(LossConfig())).step(batch())
    assert torch.equal(model.model.embed_tokens.weight, before)


def test_bfloat16_computes_under_autocast_and_keeps_float32_weights() -> None:
    subject, exact = learner(dtype="bfloat16"), learner()
    assert next(subject.model.parameters()).dtype == torch.float32
    found, expected = subject.accumulate(batch()), exact.accumulate(batch())
    assert found["entropy"] == pytest.approx(expected["entropy"], rel=0.02)
    assert found["entropy"] != expected["entropy"]
