from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_rl.batching import build, unmerged
from agent_rl.types import Annotations, Batch, CreditRow, Credits, Forest, Pack
from tests.agent_rl.forests import ForestBuilder, random_credits, random_forest

BIG = 10_000


def rows_for(forest: Forest) -> Credits:
    return Credits.of(
        CreditRow(span.node, 0, span.end, 1.0, 1.0, e.id, leaf)
        for e in forest.episodes
        for leaf in e.leaves
        for span in forest.actions(leaf)
    )


def visible(pack: Pack, i: int) -> list[int]:
    """Tokens that token i attends to, itself included, in order."""
    return [int(pack.token_ids[j]) for j in range(i + 1) if i < pack.subtree_end[j]]


def contexts(batch: Batch) -> list[tuple[object, ...]]:
    """Every loss token with the context that predicts it: what training must not change."""
    found: list[tuple[object, ...]] = []
    for pack in batch.packs:
        for m in range(len(pack.labels)):
            seen = visible(pack, int(pack.predict_from[m]))
            assert len(seen) == pack.positions[pack.predict_from[m]] + 1
            found.append(
                (
                    int(pack.sequences[m]),
                    tuple(seen),
                    int(pack.labels[m]),
                    float(pack.advantages[m]),
                    float(pack.weights[m]),
                    float(pack.temperatures[m]),
                    str(pack.sampled_logprobs[m]),
                    int(pack.versions[m]),
                )
            )
    return sorted(found)


def test_two_answers_share_their_prompt_and_first_token() -> None:
    b = ForestBuilder()
    root = b.prompt([1, 2])
    for answer in ([7, 8], [7, 9]):
        b.episode([b.turn(b.action(root, answer))])
    forest = b.forest()
    batch = build(forest, rows_for(forest), Annotations(), token_budget=BIG)
    (pack,) = batch.packs
    assert pack.token_ids.tolist() == [1, 2, 7, 8, 9]
    assert pack.positions.tolist() == [0, 1, 2, 3, 3]
    assert pack.subtree_end.tolist() == [5, 5, 5, 4, 5]
    assert pack.predict_from.tolist() == [1, 2, 1, 2]
    assert pack.labels.tolist() == [7, 8, 7, 9]
    assert pack.sequences.tolist() == [0, 0, 1, 1]
    assert (batch.tokens, batch.sequences, batch.row_tokens, batch.trie_tokens) == (4, 2, 8, 5)
    assert batch.sequence_tokens.tolist() == [2, 2]
    assert pack.proximal_logprobs is None
    assert pack.reference_logprobs is None


def test_branch_inside_a_turn_continues_the_cut_action() -> None:
    b = ForestBuilder()
    root = b.prompt([1])
    whole = b.action(root, [5, 6, 7])
    branch = b.action(whole, [8, 9], at=1)
    b.episode([b.turn(whole)])
    b.episode([b.turn(branch)])
    forest = b.forest()
    (pack,) = build(forest, rows_for(forest), Annotations(), token_budget=BIG).packs
    assert pack.token_ids.tolist() == [1, 5, 6, 7, 8, 9]
    assert pack.subtree_end.tolist() == [6, 6, 4, 4, 6, 6]
    assert visible(pack, 5) == [1, 5, 8, 9]
    assert pack.labels.tolist() == [5, 6, 7, 5, 8, 9]


def test_tokens_after_the_last_trained_one_are_not_computed() -> None:
    b = ForestBuilder()
    action = b.action(b.prompt([1, 2]), [3, 4])
    leaf = b.action(b.observation(action, [5, 6, 7]), [8])
    b.episode([b.turn(leaf)])
    credits = Credits.of([CreditRow(action, 0, 1, 1.0, 1.0, "e0", leaf)])
    batch = build(b.forest(), credits, Annotations(), token_budget=BIG)
    assert batch.packs[0].token_ids.tolist() == [1, 2, 3]
    assert batch.row_tokens == 3


def test_equal_prompts_of_two_groups_are_merged() -> None:
    b = ForestBuilder()
    b.flat([1, 0], group="g")
    b.flat([1, 0], group="h")  # the same tokens under other nodes
    forest = b.forest()
    batch = build(forest, rows_for(forest), Annotations(), token_budget=BIG)
    assert batch.trie_tokens == 5
    assert batch.tokens == 8
    assert unmerged(forest, rows_for(forest), Annotations(), token_budget=BIG).trie_tokens == 16


def test_packs_keep_to_the_budget_and_recompute_ancestors() -> None:
    b = ForestBuilder()
    b.flat([0, 0, 0, 0])  # 2 prompt tokens, a shared 3 and one own token each
    forest = b.forest()
    batch = build(forest, rows_for(forest), Annotations(), token_budget=5)
    assert [p.token_ids.tolist() for p in batch.packs] == [[1, 2, 3, 4, 5], [1, 2, 3, 6, 7]]
    assert (batch.tokens, batch.sequences) == (8, 4)


def test_a_chain_longer_than_the_budget_is_its_own_pack() -> None:
    b = ForestBuilder()
    b.flat([0, 0])
    long = b.action(b.prompt([9] * 6), [9, 9])
    b.episode([b.turn(long)])
    b.episode([b.turn(long)])
    forest = b.forest()
    batch = build(forest, rows_for(forest), Annotations(), token_budget=5)
    assert [p.size for p in batch.packs] == [5, 8]
    assert batch.packs[1].sequences.tolist() == [2, 2, 3, 3]


def test_annotations_follow_their_tokens() -> None:
    b = ForestBuilder()
    scored = b.action(b.prompt([1]), [2, 3], logprobs=[-1.0, -2.0])
    other = b.action(b.observation(scored, [4]), [5], logprobs=[-3.0])
    b.episode([b.turn(scored), b.turn(other)])
    forest = b.forest()
    notes = Annotations(
        {
            "proximal_logprobs": {scored: np.array([-1.5, -2.5], np.float32)},
            "reference_logprobs": {scored: np.array([-4.0, -5.0], np.float32)},
        }
    )
    (pack,) = build(forest, rows_for(forest), notes, token_budget=BIG).packs
    assert pack.proximal_logprobs is not None
    assert pack.reference_logprobs is not None
    assert pack.proximal_logprobs.tolist() == [-1.5, -2.5, -3.0]
    assert pack.reference_logprobs[:2].tolist() == [-4.0, -5.0]
    assert np.isnan(pack.reference_logprobs[2])


def test_other_policies_are_context_only() -> None:
    b = ForestBuilder()
    mine = b.action(b.prompt([1]), [2])
    theirs = b.action(b.observation(mine, [3]), [4], policy="critic")
    last = b.action(b.observation(theirs, [5]), [6])
    b.episode([b.turn(last)])
    forest = b.forest()
    batch = build(forest, rows_for(forest), Annotations(), token_budget=BIG)
    assert batch.packs[0].labels.tolist() == [2, 6]
    assert batch.tokens == 2
    critic = build(forest, rows_for(forest), Annotations(), policy="critic", token_budget=BIG)
    assert critic.packs[0].token_ids.tolist() == [1, 2, 3, 4]


def test_nothing_to_train_is_an_empty_batch() -> None:
    batch = build(Forest(), Credits(), Annotations(), token_budget=BIG)
    assert batch.packs == ()
    assert (batch.tokens, batch.sequences) == (0, 0)


def test_rows_that_cannot_be_trained_are_refused() -> None:
    b = ForestBuilder()
    root = b.prompt([1, 2])
    action = b.action(root, [3, 4])
    branch = b.action(action, [5], at=1)
    first = b.action(None, [6, 7])
    greedy = b.action(root, [8], temperature=0.0)
    for node, end, chain, message in [
        (root, 2, action, "only action tokens"),
        (first, 2, first, "first token of a root"),
        (greedy, 1, greedy, "temperature above 0"),
        (action, 2, branch, "holds 1 tokens"),
        (branch, 1, action, "does not pass"),
    ]:
        credits = Credits.of([CreditRow(node, 0, end, 1.0, 1.0, "e", chain)])
        with pytest.raises(ValueError, match=message):
            build(b.forest(), credits, Annotations(), token_budget=BIG)
    with pytest.raises(ValueError, match="token_budget is 0"):
        build(b.forest(), Credits(), Annotations(), token_budget=0)


@given(st.integers(0, 10**6), st.integers(4, 60))
@settings(max_examples=60, deadline=None)
def test_every_loss_token_keeps_its_context(seed: int, budget: int) -> None:
    forest = random_forest(seed)
    credits = random_credits(forest, seed + 1)
    merged = build(forest, credits, Annotations(), token_budget=BIG)
    cut = build(forest, credits, Annotations(), token_budget=budget)
    plain = unmerged(forest, credits, Annotations(), token_budget=BIG)
    assert contexts(merged) == contexts(cut) == contexts(plain)
    assert merged.trie_tokens <= cut.trie_tokens <= plain.trie_tokens == plain.row_tokens
    assert (merged.tokens, merged.sequences) == (credits.tokens, credits.sequences)
    longest = max((len(contexts_of) for contexts_of in (p.token_ids for p in plain.packs)), default=0)
    assert longest <= BIG
    for pack in cut.packs:
        assert pack.size <= budget or pack.positions.max() + 1 == pack.size
    owners = [{int(s) for s in p.sequences} for p in cut.packs]
    assert sum(len(o) for o in owners) == credits.sequences


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_each_distinct_prefix_is_computed_once(seed: int) -> None:
    forest = random_forest(seed)
    merged = build(forest, random_credits(forest, seed), Annotations(), token_budget=BIG)
    for pack in merged.packs:
        prefixes = [tuple(visible(pack, i)) for i in range(pack.size)]
        assert len(set(prefixes)) == len(prefixes)
