"""A node of a file, as the analyser sees it."""

from collections.abc import Container, Iterable, Sequence

from pulse.graph import OutletId
from pulse.infer.relations import FactRelation
from pulse.infer.wire_facts import WireFacts
from pulse.typed import TypedNetwork

MAX_VALUE_LENGTH = 60
"""The longest text of a value, or of a list of values, in dumps; what is longer is cut."""


def short_text(value: object) -> str:
    """Return the text of an attribute for dumps, cut if it is long."""
    text = str(value)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[: MAX_VALUE_LENGTH - 3]}..."


class InferenceOp:
    """A node of a file, in the terms of its format."""

    @property
    def name(self) -> str:
        """The operator's name in dumps and errors."""
        return type(self).__name__

    @property
    def is_supported(self) -> bool:
        """Whether it can be translated."""
        return True

    @property
    def advice(self) -> str:
        """What to do if it is not supported, if that is not to add it."""
        return ""

    @property
    def origin(self) -> str:
        """The origin of the node: its name in the file and the line of the program, if the file has them."""
        return ""

    def translate(self, target: TypedNetwork, wire: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        """Wire equivalent typed ops, and return the outlets of this node's outputs."""
        raise NotImplementedError

    @property
    def uniform(self) -> bool:
        """Whether ``translate`` treats all sizes in the same way, so that symbols may replace unknown sizes."""
        return False

    @property
    def parts(self) -> Container[int]:
        """Inputs whose values may have unknown entries, which are symbols to ``translate`` as well."""
        return ()

    def relations(
        self, wire: str, inputs: Sequence[OutletId], outlets: Sequence[OutletId], wire_facts: WireFacts
    ) -> Iterable[FactRelation]:
        """Return the relations between its wires, from their known facts in ``wire_facts``."""
        return ()

    def detail(self) -> str:
        """Return the attributes, for dumps."""
        return ""
