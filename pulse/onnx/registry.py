"""The registry of operators of this package, of plugins and of the user.

An operator is named by its type in the default domain, and as ``domain::Type`` in any other.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from pulse.errors import LoadError
from pulse.graph import OutletId
from pulse.infer.rules import Rules
from pulse.infer.translators import Translators
from pulse.support.plugins import load_plugins

if TYPE_CHECKING:
    from pulse.infer.node_context import NodeContext

Translator: TypeAlias = "Callable[[NodeContext], OutletId | Sequence[OutletId]]"
T = TypeVar("T", bound=Translator)

DEFAULT_DOMAINS = ("", "ai.onnx")
DOMAIN_SUPPORTS: dict[str, Callable[[str], bool]] = {}
"""Domain of another format -> function that says whether an operator is supported; the formats add themselves."""
ENTRY_POINT_GROUP = "pulse.operators"
"""The entry points of plugins, which register operators when imported."""

TRANSLATORS: "Translators[NodeContext]" = Translators()
"""Operator -> the function of this package that wires it."""
onnx_op = TRANSLATORS.register
RULES = Rules()
"""Operator of the default domain -> its rule of inference."""
rule = RULES.rule
USER_TRANSLATORS: dict[str, Translator] = {}
"""Operator -> the function of a user or plugin, which takes precedence."""


def operator_name(domain: str, op_type: str) -> str:
    """Return the name under which an operator is registered."""
    return op_type if domain in DEFAULT_DOMAINS else f"{domain}::{op_type}"


def operator(*names: str, override: bool = False) -> Callable[[T], T]:
    """Register a function as the translator of operators, from outside this package.

    The function takes a ``pulse.extend.NodeContext`` and returns the outlet, or outlets, that replace
    the node's outputs. A function that is defined again, as in a notebook, replaces itself.

    names     ``my.domain::MyOp``; without a domain an operator of ONNX itself
    override  take the place of an operator that is supported already
    Raises    LoadError: an operator is supported already
    """

    def register(translator: T) -> T:
        for name in names:
            domain, _, op_type = name.rpartition("::")
            full_name = operator_name(domain, op_type)
            if not override and _is_taken(full_name, translator):
                raise LoadError(f"{name} already exists; use operator({name!r}, override=True) to replace it")
            USER_TRANSLATORS[full_name] = translator
        return translator

    return register


def _is_taken(name: str, translator: Translator) -> bool:
    if name in USER_TRANSLATORS:
        return _qualified_name(USER_TRANSLATORS[name]) != _qualified_name(translator)
    domain, _, op_type = name.rpartition("::")
    if domain in DOMAIN_SUPPORTS:
        return DOMAIN_SUPPORTS[domain](op_type)
    import_module("pulse.onnx.operators.families")
    return name in TRANSLATORS


def _qualified_name(translator: Translator) -> tuple[str, str]:
    return translator.__module__, translator.__qualname__


def find_translator(name: str) -> "Translator | None":
    """Return the function that wires an operator; plugins are loaded if no other entry has it.

    Raises LoadError: a plugin fails.
    """
    if name not in USER_TRANSLATORS and name not in TRANSLATORS:
        load_plugins(ENTRY_POINT_GROUP)
    return USER_TRANSLATORS.get(name) or TRANSLATORS.get(name)
