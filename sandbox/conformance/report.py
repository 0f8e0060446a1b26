"""What a check of a sandbox or an environment found: one case a rule, in JSON and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

Status = Literal["pass", "fail", "unenforceable"]


class Broken(Exception):
    """A rule does not hold; the message says what was expected and what was found."""


class Unenforceable(Exception):
    """A rule cannot be tried here; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One rule tried on one target; `reason` says why not, or what a rule that passed has to tell."""

    name: str
    status: Status
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """Every case of one target."""

    target: str
    cases: tuple[Case, ...]
    essential: frozenset[str] = frozenset()
    """Rules that must have passed: a target that could not be tried at all has not passed."""

    @property
    def passed(self) -> bool:
        """Whether no rule failed and the essential ones were tried."""
        tried = {case.name for case in self.cases if case.status == "pass"}
        return all(case.status != "fail" for case in self.cases) and self.essential <= tried

    def to_json(self) -> dict[str, Any]:
        """`{"target", "passed", "cases": [{"name", "status", "reason"}]}`."""
        cases = [{"name": c.name, "status": c.status, "reason": c.reason} for c in self.cases]
        return {"target": self.target, "passed": self.passed, "cases": cases}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """What `to_json` gave.

        Raises:
            ValueError: it is something else.
        """
        try:
            cases = tuple(Case(name=c["name"], status=c["status"], reason=c["reason"]) for c in data["cases"])
            return cls(target=data["target"], cases=cases)
        except (KeyError, TypeError) as error:
            raise ValueError(f"this is no report: {error!r}") from error

    def text(self) -> str:
        """A plain table with one line a case and a last line that counts them; a repeated reason is said once."""
        names = max((len(c.name) for c in self.cases), default=0)
        first: dict[str, str] = {}
        for c in self.cases:
            first.setdefault(c.reason, c.name)
        said = {
            c.name: c.reason if first[c.reason] == c.name else f"as {first[c.reason]}" for c in self.cases
        }
        said |= {c.name: "" for c in self.cases if not c.reason}
        lines = [f"{c.status:<13}  {c.name:<{names}}  {said[c.name]}".rstrip() for c in self.cases]
        failed = sum(c.status == "fail" for c in self.cases)
        open_ = sum(c.status == "unenforceable" for c in self.cases)
        verdict = "passed" if self.passed else "did not pass"
        lines.append(
            f"{self.target} {verdict}: {len(self.cases)} cases, {failed} failed, {open_} unenforceable"
        )
        broken = next((c.name for c in self.cases if c.status == "fail"), None)
        if failed > 1:
            lines.append(f"mend {broken} first: the others may follow from it")
        return "\n".join(lines)
