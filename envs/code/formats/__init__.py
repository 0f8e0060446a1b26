"""The field's files of coding problems, as tasks of `code-v1`: one format a module."""

from __future__ import annotations

from collections.abc import Mapping

from envs.code.formats import apps, human_eval, live_code_bench, mbpp
from envs.formats import Format

FORMATS: Mapping[str, Format] = {
    "human-eval": Format(read=human_eval.read, fields=frozenset(human_eval.FIELDS)),
    "evalplus": Format(read=human_eval.read_plus, fields=frozenset(human_eval.PLUS_FIELDS)),
    "mbpp": Format(read=mbpp.read, fields=frozenset({"code", "test_list"})),
    "apps": Format(read=apps.read, fields=apps.FIELDS, folder=apps.is_folder),
    "livecodebench": Format(read=live_code_bench.read, fields=live_code_bench.FIELDS),
}
