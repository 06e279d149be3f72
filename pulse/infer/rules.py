"""Inference rules: the relations between the wires of an operator, by which sizes are also known from its outputs."""

from collections.abc import Callable, Container, Iterable
from typing import TYPE_CHECKING, TypeAlias

from pulse.infer.relations import FactRelation
from pulse.support.record import record
from pulse.support.registry import Registry

if TYPE_CHECKING:
    from pulse.infer.inference_node import InferenceNode

RelationsFunction: TypeAlias = "Callable[[InferenceNode], Iterable[FactRelation]]"


@record
class Rule:
    """The relations between the wires of an operator, in addition to its translator.

    relations  the relations, from the facts so far
    uniform    whether the translator treats all sizes in the same way, and may see symbols for unknown sizes
    parts      inputs whose values may have entries that are not known, and are symbols to the translator as well
    """

    relations: RelationsFunction
    uniform: bool = False
    parts: Container[int] = ()


DEFAULT = Rule(lambda node: ())
"""The rule of operators inferred by their translators alone."""

EVERY_INPUT = range(1 << 31)
"""Every input, as ``parts``."""


class Rules(Registry[str, Rule]):
    """Operator -> its rule."""

    def rule(
        self, *types: str, uniform: bool = False, parts: Container[int] = ()
    ) -> Callable[[RelationsFunction], RelationsFunction]:
        """Register a function as the rule of operators. Raises ValueError: an operator has one already."""

        def register(relations: RelationsFunction) -> RelationsFunction:
            self.enter(types, Rule(relations, uniform, parts))
            return relations

        return register
