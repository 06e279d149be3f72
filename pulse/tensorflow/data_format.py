"""The axis of the channels of a node, and attributes that list every axis."""

from pulse.graph import OutletId
from pulse.infer import nhwc
from pulse.support.wording import count_of
from pulse.tensorflow.node import TensorflowNode


def has_channels_first(node: TensorflowNode) -> bool:
    """Return whether channels are the second axis. Raises LoadError: the format is unknown."""
    data_format = node.text("data_format", "NHWC")
    if data_format not in ("NHWC", "NCHW", "NWC", "NCW", "NDHWC", "NCDHW"):
        raise node.error(f"data_format {data_format!r} is not supported")
    return data_format.startswith("NC")


def to_second(node: TensorflowNode, x: OutletId) -> OutletId:
    """Return a tensor with its channels second, if they are last."""
    rank = node.graph.fact(x).rank
    if has_channels_first(node):
        return x
    return node.transpose(x, nhwc.channels_first(rank), "channels_second")


def from_second(node: TensorflowNode, x: OutletId) -> OutletId:
    """Return a tensor with its channels on the axis that the node uses."""
    rank = node.graph.fact(x).rank
    if has_channels_first(node):
        return node.name_result(x)
    return node.transpose(x, nhwc.channels_last(rank))


def spatial_attribute(node: TensorflowNode, name: str, rank: int) -> list[int]:
    """Return an attribute that lists every axis: those between batch and channels.

    Raises LoadError: the others are not 1.
    """
    values = node.read_list(name, rank)
    first = has_channels_first(node)
    outer = (values[0], values[1] if first else values[-1])
    inner = values[2:] if first else values[1:-1]
    if outer != (1, 1) or any(value < 1 for value in inner):
        raise node.error(f"attribute {name} is {values}; only spatial axes may have other values than 1")
    return inner


def read_pads(node: TensorflowNode, rank: int) -> dict[str, object]:
    """Return the padding as ONNX writes it. Raises LoadError: the padding is unknown."""
    padding = node.text("padding")
    if padding == "VALID":
        return {"auto_pad": "VALID"}
    if padding == "SAME":
        return {"auto_pad": "SAME_UPPER"}
    node.require(padding == "EXPLICIT", f"padding {padding!r} is not supported")
    paddings = node.integer_list("explicit_paddings")
    if len(paddings) != 2 * rank:
        raise node.error(
            f"{count_of(len(paddings), 'explicit padding')} for {count_of(rank, 'axis', 'axes')}"
        )
    pairs = list(zip(paddings[::2], paddings[1::2]))
    inner = pairs[2:] if has_channels_first(node) else pairs[1:-1]
    return {"pads": [before for before, _ in inner] + [after for _, after in inner]}
