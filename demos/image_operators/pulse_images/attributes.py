"""Attributes with an entry for each axis of an image."""

from pulse.extend import NodeContext


def spatial_integers(node: NodeContext, name: str, rank: int) -> tuple[int, ...]:
    """Return one positive integer for each axis, 1 by default.

    Raises LoadError: the number of entries is wrong, or one is not positive
    """
    values = node.integer_list(name, (1,) * rank)
    if len(values) != rank or any(value < 1 for value in values):
        raise node.error(
            f"attribute {name} {list(values)} must have {rank} positive entries; export the model again"
        )
    return values


def spatial_pads(node: NodeContext, rank: int) -> tuple[tuple[int, int], ...]:
    """Return the attribute ``pads``: before and after each axis, 0 by default.

    Raises LoadError: the number of entries is wrong, or one is negative
    """
    values = node.integer_list("pads", (0,) * (2 * rank))
    if len(values) != 2 * rank or any(value < 0 for value in values):
        raise node.error(
            f"attribute pads {list(values)} must have {2 * rank} entries of 0 or more; slice before the node"
        )
    return tuple(zip(values[:rank], values[rank:], strict=True))
