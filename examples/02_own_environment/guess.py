"""Boxes: who owns which box, and what is in it? Two look-ups, then an answer. An environment in 30 lines."""

import random

from agent_rl import PolicySpec, Task, ToolEnv, ToolError, reward, tool
from envs.policies import ScriptedPolicy, call
from envs.tasksets import task_id, world_seeds


class Guess(ToolEnv):
    id = "guess-v1"
    max_turns = 6

    @classmethod
    def tasks(cls, split="train", n=1, seed=0):
        return [make_task(split, world_seed) for world_seed in world_seeds(split, n, seed)]

    def setup(self, task):
        self.owners, self.contents, self.given = task.data["owners"], task.data["contents"], None

    @tool
    def find(self, name: str) -> str:
        """Find the box that a person owns."""
        if name not in self.owners:
            raise ToolError(f"nobody is called {name!r}; the people are {', '.join(self.owners)}")
        return self.owners[name]

    @tool
    def look(self, box: str) -> str:
        """Look into a box and read the number in it."""
        if box not in self.contents:
            raise ToolError(f"there is no box {box!r}; the boxes are {', '.join(self.contents)}")
        return self.contents[box]

    @tool
    def answer(self, number: str) -> str:
        """Answer with a number; this ends the episode."""
        self.given = number
        self.finish()
        return "thank you"

    def grade(self):
        return reward(correct=float(self.given == self.task.answer))

    @classmethod
    def policies(cls):
        return {p.name: p for p in POLICIES}


PEOPLE, BOXES = ["ada", "ben", "eva", "max", "zoe"], ["a", "b", "c", "d", "e"]


def make_task(split, seed):
    dice = random.Random(seed)
    owners = dict(zip(PEOPLE, dice.sample(BOXES, 5), strict=True))
    contents = {box: str(number) for box, number in zip(BOXES, dice.sample(range(10, 100), 5), strict=True)}
    who = dice.choice(PEOPLE)
    prompt = ({"role": "user", "content": f"Which number is in the box of {who}?"},)
    data, answer = {"owners": owners, "contents": contents, "who": who}, contents[owners[who]]
    return Task(
        id=task_id("guess-v1", prompt, data, answer),
        env="guess-v1",
        prompt=prompt,
        data=data,
        answer=answer,
        split=split,
        seed=seed,
    )


# ------------------------------------------------------------------- scripted policies: what the checker plays


def gold(task, seed):
    def script():
        box = yield call("find", name=task.data["who"])
        number = yield call("look", box=box)
        yield call("answer", number=number)

    return ScriptedPolicy(script())


def sloppy(task, seed):
    """Looks into any box half of the time."""
    dice = random.Random(f"{task.id}:{seed}")

    def script():
        box = yield call("find", name=task.data["who"])
        number = yield call("look", box=box if dice.random() < 0.5 else dice.choice(BOXES))
        yield call("answer", number=number)

    return ScriptedPolicy(script())


def noop(task, seed):
    return ScriptedPolicy([], done="I would rather not.")


def answer_without_looking(task, seed):
    return ScriptedPolicy([call("answer", number="correct")])


def answer_with_the_box(task, seed):
    return ScriptedPolicy([call("answer", number=box) for box in task.data["owners"].values()])


def answer_everything(task, seed):
    return ScriptedPolicy([call("answer", number=" ".join(str(n) for n in range(10, 100)))])


POLICIES = [
    PolicySpec(name="gold", kind="gold", make=gold),
    PolicySpec(name="sloppy", kind="sloppy", make=sloppy),
    PolicySpec(name="noop", kind="noop", make=noop),
    *(
        PolicySpec(name=make.__name__, kind="attack", make=make)
        for make in (answer_without_looking, answer_with_the_box, answer_everything)
    ),
]
