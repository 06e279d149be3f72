"""Unknown operators, kept so that the graph can be shown."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pulse.errors import InputError
from pulse.facts import Array, TypedFact
from pulse.ops.op import Env, Op, Relation, Whole
from pulse.support.record import record
from pulse.support.wording import spell


@record(eq=False)
class UnknownOp(Op):
    """An operator that is kept as the file states it, with the facts that the file states of its outputs.

    Stream   whole
    Raises   InputError: it is executed

    operator    its name, with its domain
    node        the node, for errors
    attributes  attributes in the file
    stated      the facts of its outputs
    advice      what to do instead of adding the operator; empty if there is nothing
    """

    operator: str
    node: str
    attributes: Mapping[str, Any]
    stated: tuple[TypedFact, ...]
    advice: str = ""
    folds: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return self.operator

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return list(self.stated)

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        raise InputError(
            f"{self.node} ({self.operator}): the operator is not supported, so the model cannot be run; register it "
            f'with @pulse.operator("{self.operator}"), or keep only outputs that do not need it ({spell("outputs")})'
        )

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        return Whole(
            "the operator is not supported",
            self.advice or f'register it with @pulse.operator("{self.operator}") and a relation',
        )

    def detail(self) -> str:
        return " ".join(f"{name}={value}" for name, value in sorted(self.attributes.items()))
