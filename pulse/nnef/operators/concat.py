"""Joins."""

from pulse.nnef.registry import writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import NodeWriter


@writes("Concat")
def write_concat(w: NodeWriter) -> Name:
    parts = [slot for slot in range(len(w.inputs)) if 0 not in w.sizes(slot)]
    if len(parts) == 1:
        return w.emit("copy", w.x(parts[0]))
    return w.emit("concat", [w.x(slot) for slot in parts], axis=w.axis(0, len(w.made())))
