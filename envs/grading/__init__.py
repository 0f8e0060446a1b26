"""Judging episodes: how many graders run at once, and what a wall-clock timeout means."""

from envs.grading.admission import admitted, judged

__all__ = ["admitted", "judged"]
