from __future__ import annotations

import threading
import time

import pytest

from envs.grading import admission
from envs.grading.admission import Gate, judged


def test_no_more_are_inside_than_the_bound() -> None:
    gate, inside, most, lock = Gate(2), 0, 0, threading.Lock()

    def grade() -> None:
        nonlocal inside, most
        with gate.admitted():
            with lock:
                inside += 1
                most = max(most, inside)
            time.sleep(0.01)
            with lock:
                inside -= 1

    threads = [threading.Thread(target=grade) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 2


def test_alone_means_alone_and_is_not_overtaken() -> None:
    gate, order = Gate(2), list[str]()
    entered, leave = threading.Event(), threading.Event()

    def first() -> None:
        with gate.admitted():
            entered.set()
            leave.wait(5)
            order.append("first")

    def alone() -> None:
        with gate.alone():
            time.sleep(0.05)  # whoever came in meanwhile would be noted before
            order.append("alone")

    def late() -> None:
        with gate.admitted():
            order.append("late")

    threads = [threading.Thread(target=run) for run in (first, alone, late)]
    threads[0].start()
    entered.wait(5)
    threads[1].start()
    while not gate._wanting:
        time.sleep(0.001)
    threads[2].start()
    leave.set()
    for thread in threads:
        thread.join()
    assert order == ["first", "alone", "late"]


def test_a_timeout_is_judged_once_more_and_the_second_verdict_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "_GATE", Gate(1))
    verdicts = iter(["late", "right", "never asked for"])
    assert judged(lambda: next(verdicts), timed_out=lambda v: v == "late") == "right"
    verdicts = iter(["late", "late", "never asked for"])
    assert judged(lambda: next(verdicts), timed_out=lambda v: v == "late") == "late"
    verdicts = iter(["wrong", "never asked for"])
    assert judged(lambda: next(verdicts), timed_out=lambda v: v == "late") == "wrong"


def test_a_grader_that_raises_gives_its_place_back() -> None:
    gate = Gate(1)
    for hold in (gate.admitted, gate.alone, gate.admitted):
        with pytest.raises(ZeroDivisionError), hold():
            raise ZeroDivisionError
    with gate.admitted():
        pass


def test_nobody_waits_for_ever() -> None:
    gate = Gate(1, patience_s=0.01)
    with gate.admitted(), gate.admitted(), gate.alone():
        pass
    assert gate._inside == 0


def test_a_gate_admits_somebody() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Gate(0)
