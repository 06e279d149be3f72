"""A process that runs one NNEF file in tract, and may abort there: ``python -m pulse.runtimes.tract_worker PATH``.

It first sends the number of the model's inputs. A request is the number of a stream, the number of arrays, and the
arrays as .npy, each after its length; streams begin with their first request. An answer: + and arrays, or - and text.
"""

import io
import struct
import sys
from importlib import import_module
from typing import IO, Any

import numpy as np

INT64 = struct.Struct("<q")


def send(file: IO[bytes], parts: list[bytes]) -> None:
    """Write byte strings, each after its length."""
    for part in parts:
        file.write(INT64.pack(len(part)) + part)
    file.flush()


def receive(file: IO[bytes]) -> bytes:
    """Read one byte string. Raises EOFError: the other side has ended."""
    head = file.read(INT64.size)
    if len(head) < INT64.size:
        raise EOFError
    (length,) = INT64.unpack(head)
    return file.read(length)


def pack(array: "np.ndarray[Any, Any]") -> bytes:
    """Return an array as .npy."""
    memory = io.BytesIO()
    np.save(memory, array, allow_pickle=False)
    return memory.getvalue()


def unpack(content: bytes) -> "np.ndarray[Any, Any]":
    """Return the reverse of ``pack``."""
    return np.load(io.BytesIO(content), allow_pickle=False)


def error_text(error: Exception) -> str:
    """Return the text of tract's error, without the stack of its functions and the listings of its graphs."""
    lines = str(error).partition("Stack backtrace")[0].splitlines()
    return " ".join(" ".join(line for line in lines if "|" not in line).split())


def main(path: str) -> None:
    """Answer requests until the input ends."""
    tract: Any = import_module("tract")
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    try:
        model = tract.nnef().load(path)
        inputs = model.input_count()
        runnable = model.into_runnable()
    except tract.TractError as error:
        send(sink, [b"-", error_text(error).encode()])
        return
    send(sink, [b"+", str(inputs).encode()])
    states: dict[bytes, Any] = {}
    while True:
        try:
            stream = receive(source)
        except EOFError:
            return
        arrays = [unpack(receive(source)) for _ in range(int(receive(source)))]
        try:
            state = states.get(stream) or states.setdefault(stream, runnable.spawn_state())
            results = [pack(np.array(tensor.to_numpy())) for tensor in state.run(arrays)]
        except tract.TractError as error:
            send(sink, [b"-", error_text(error).encode()])
        else:
            send(sink, [b"+", str(len(results)).encode(), *results])


if __name__ == "__main__":
    main(sys.argv[1])
