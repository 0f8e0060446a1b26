"""The vocabulary of the learning layer. Import nouns from here and Protocols from `agent_rl.types.seams`."""

from agent_rl.types.annotations import AnnotationName, Annotations
from agent_rl.types.batch import Batch, Pack
from agent_rl.types.credits import CreditRow, Credits
from agent_rl.types.episode import Episode, Purpose
from agent_rl.types.forest import Forest, Span, merge
from agent_rl.types.metrics import Metrics, prefixed
from agent_rl.types.node import Float32, Float64, Int32, Node, NodeKind
from agent_rl.types.turn import Turn, TurnKind

__all__ = [
    "AnnotationName",
    "Annotations",
    "Batch",
    "CreditRow",
    "Credits",
    "Episode",
    "Float32",
    "Float64",
    "Forest",
    "Int32",
    "Metrics",
    "Node",
    "NodeKind",
    "Pack",
    "Purpose",
    "Span",
    "Turn",
    "TurnKind",
    "merge",
    "prefixed",
]
