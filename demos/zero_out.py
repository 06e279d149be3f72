"""An operator of your own in a TensorFlow graph: declared, computed in numpy or in C, called, and run in a session.

ZeroOut keeps the first number and makes the others 0. ``--c`` compiles its kernel with the C compiler of the machine.
"""

import argparse
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import cffi
import numpy as np

import pulse
from pulse.tensorflow.messages import GraphDef

SOURCE = "void zero_out(const int *x, int *y, int n) { for (int i = 0; i < n; i++) y[i] = i ? 0 : x[0]; }"

zero_out = pulse.tensorflow.register_op("ZeroOut", inputs="to_zero:i32", outputs="zeroed:i32")


@pulse.tensorflow.register_kernel("ZeroOut")
def in_numpy(x: np.ndarray) -> np.ndarray:
    """Keep the first number; set the others to zero."""
    y = np.zeros_like(x)
    y.flat[:1] = x.flat[:1]
    return y


def in_c(folder: Path) -> None:
    """Do the same as a compiled function."""
    (folder / "zero_out.c").write_text(SOURCE)
    library = folder / "zero_out.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, folder / "zero_out.c"], check=True)
    ffi = cffi.FFI()
    ffi.cdef("void zero_out(const int *x, int *y, int n);")
    compiled: Any = ffi.dlopen(str(library))

    @pulse.tensorflow.register_kernel("ZeroOut")
    def call(x: np.ndarray) -> np.ndarray:
        x, y = np.ascontiguousarray(x), np.empty(x.shape, x.dtype)
        compiled.zero_out(ffi.cast("int *", x.ctypes.data), ffi.cast("int *", y.ctypes.data), x.size)
        return y


def graph() -> bytes:
    """Return the graph X -> ZeroOut -> y as a GraphDef."""
    proto = GraphDef()
    proto.node.add(name="x", op="Placeholder").attr["dtype"].type = 3
    proto.node[0].attr["shape"].shape.dim.add(size=-1)
    proto.node.add(name="y", op="ZeroOut", input=["x"])
    return proto.SerializeToString()


def main() -> None:
    """Call the operator, and run it in a graph."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--c", action="store_true", help="compute it in C")
    with tempfile.TemporaryDirectory() as folder:
        if parser.parse_args().c:
            in_c(Path(folder))
        session = pulse.tensorflow.load(graph()).session()
        for numbers in ([5, 4, 3, 2, 1], []):
            print(
                numbers,
                "called",
                zero_out(numbers).tolist(),
                "in a graph",
                session.run("y", {"x": numbers}).tolist(),
            )


if __name__ == "__main__":
    main()
