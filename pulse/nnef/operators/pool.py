"""Pools over windows."""

from pulse.nnef.operators.conv import window
from pulse.nnef.registry import writes
from pulse.nnef.syntax import Expression, Name
from pulse.nnef.write.node import NodeWriter


def _arguments(w: NodeWriter) -> dict[str, Expression]:
    """Windows with entries for the first two axes, which pools have in NNEF."""
    spatial = len(w.sizes()) - 2
    if w.attribute("ceil_mode", 0):
        raise w.error("round the size of a pool down only", "give the node more padding behind instead of ceil_mode")
    found = window(w, spatial)
    padding, stride, dilation = (found[name] for name in ("padding", "stride", "dilation"))
    assert isinstance(padding, list) and isinstance(stride, list) and isinstance(dilation, list)
    return {
        "size": [1, 1, *(int(size) for size in w.attributes["kernel_shape"])],
        "padding": [(0, 0), (0, 0), *padding],
        "stride": [1, 1, *stride],
        "dilation": [1, 1, *dilation],
    }


@writes("MaxPool")
def write_max(w: NodeWriter) -> Name:
    if w.makes(1):
        raise w.error("count the places of a pool otherwise", "leave out the second output")
    return w.emit("max_pool", w.x(), **_arguments(w), border="ignore")


@writes("AveragePool")
def write_average(w: NodeWriter) -> Name:
    """The border says whether the padding counts."""
    border = "constant" if w.attribute("count_include_pad", 0) else "ignore"
    return w.emit("box", w.x(), **_arguments(w), border=border, normalize=True)


@writes("LpPool")
def write_power(w: NodeWriter) -> Name:
    x, dtype, power = w.emit("abs", w.x(), suffix="abs"), w.dtype(), int(w.attribute("p", 2))
    if power == 1:
        return w.emit("box", x, **_arguments(w), border="constant", normalize=False)
    raised = w.emit("mul", x, x, suffix="square") if power == 2 else w.emit("pow", x, w.number(power, dtype), suffix="power")
    total = w.emit("box", raised, suffix="total", **_arguments(w), border="constant", normalize=False)
    return w.emit("sqrt", total) if power == 2 else w.emit("pow", total, w.number(1 / power, dtype, "root"))
