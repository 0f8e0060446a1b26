"""Judging agents on held-out tasks: success with an interval, pass@k, turns, tool errors, faults apart."""

from __future__ import annotations

from agent_rl.evaluation.metrics import clustered_interval, pass_at_k, wilson
from agent_rl.evaluation.report import Outcome, Report, summarise
from agent_rl.evaluation.run import evaluate, evaluate_policy, play

__all__ = [
    "Outcome",
    "Report",
    "clustered_interval",
    "evaluate",
    "evaluate_policy",
    "pass_at_k",
    "play",
    "summarise",
    "wilson",
]
