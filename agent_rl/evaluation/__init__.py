"""Judging agents on held-out tasks: success with an interval, pass@k, turns, tool errors, faults apart."""

from __future__ import annotations

from agent_rl.evaluation.metrics import clustered_interval, pass_at_k, wilson
from agent_rl.evaluation.report import Outcome, Report, summarise
from agent_rl.evaluation.run import evaluate, evaluate_policy, play
from agent_rl.evaluation.scripted import env_policies, evaluate_scripted, find_policy, held_out_tasks

__all__ = [
    "Outcome",
    "Report",
    "clustered_interval",
    "env_policies",
    "evaluate",
    "evaluate_policy",
    "evaluate_scripted",
    "find_policy",
    "held_out_tasks",
    "pass_at_k",
    "play",
    "summarise",
    "wilson",
]
