"""The metadata of a file about its stream: tract's properties, and others from which a stream is reopened.

pulse.delay             frames of each output before its first one
pulse.input_axes        the stream axis of each input; -1: given once
pulse.output_axes       the same of outputs
pulse.streaming_symbol  the symbol; these four are tract's own
pulse.frames            frames of the symbol in a pulse
pulse.input_delay       frames of each input before its first one; 0 in the files that pulse writes
pulse.input_rates       frames of each input for each frame of the symbol, such as 1/2
pulse.input_lengths     frames of each input in a whole stream, integer arithmetic on the symbol
pulse.output_rates, pulse.output_lengths   the same of outputs
pulse.end               the input for the stream's length; omitted if there is none
pulse.await_frames, pulse.await_offsets, pulse.await_lengths   pulses continue until offset + length frames, that many
                        in each pulse, have been run; left out if nothing is awaited
pulse.assumptions       the conditions on the symbol; omitted if there are none
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from pulse.errors import LoadError
from pulse.metadata import AwaitedMetadata, PortMetadata, StateMetadata, StreamMetadata
from pulse.nnef.syntax import Assignment, Call, Document, Expression, Fragment, Unary
from pulse.support.wording import count_of

FRAGMENT = "tract_core_properties"
DELAY_PROPERTY, SYMBOL_PROPERTY, FRAMES_PROPERTY = "pulse.delay", "pulse.streaming_symbol", "pulse.frames"
INPUT_AXES, OUTPUT_AXES = "pulse.input_axes", "pulse.output_axes"

Properties: TypeAlias = Mapping[str, "list[int | str]"]


def properties_fragment(metadata: StreamMetadata, inputs: Sequence[str], outputs: Sequence[str]) -> Fragment:
    """Return the properties of a pulsed model, in tract's form.

    inputs, outputs  the identifiers of the file, in the order of the properties; then the end's, if any
    """
    entries: dict[str, Sequence[int] | Sequence[str]] = {
        DELAY_PROPERTY: [port.delay for port in metadata.outputs],
        INPUT_AXES: [-1 if port.axis is None else port.axis for port in metadata.inputs],
        OUTPUT_AXES: [-1 if port.axis is None else port.axis for port in metadata.outputs],
        SYMBOL_PROPERTY: [metadata.symbol],
        FRAMES_PROPERTY: [metadata.pulse],
        "pulse.input_delay": [port.delay for port in metadata.inputs],
        "pulse.input_rates": [port.rate for port in metadata.inputs],
        "pulse.input_lengths": [port.length for port in metadata.inputs],
        "pulse.output_rates": [port.rate for port in metadata.outputs],
        "pulse.output_lengths": [port.length for port in metadata.outputs],
        "pulse.end": [inputs[len(metadata.inputs)]] if metadata.end is not None else [],
        "pulse.await_frames": [awaited.frames for awaited in metadata.awaits],
        "pulse.await_offsets": [awaited.offset for awaited in metadata.awaits],
        "pulse.await_lengths": [awaited.length for awaited in metadata.awaits],
        "pulse.assumptions": metadata.assumptions,
    }
    pairs: list[Expression] = [(name, _to_expression(values)) for name, values in entries.items() if values]
    body = (Assignment("properties", pairs),)
    return Fragment(FRAGMENT, (), (("properties", "(string, tensor<scalar>)[]"),), body)


def _to_expression(values: Sequence[int] | Sequence[str]) -> Expression:
    if isinstance(values[0], str):
        return [*values]
    return Call("tract_core_cast", ([*values],), (("to", "i64"),))


def read_properties(document: Document) -> Properties:
    """Return the properties of a file that are lists of integers or texts; tract has no others here."""
    properties: dict[str, list[int | str]] = {}
    for fragment in document.fragments:
        if fragment.name != FRAGMENT or not fragment.body or len(fragment.body) != 1:
            continue
        entries = fragment.body[0].value
        if not isinstance(entries, list):
            continue
        for entry in entries:
            if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str):
                values = _read_literals(entry[1])
                if values is not None:
                    properties[entry[0]] = values
    return properties


def _read_literals(value: Expression) -> "list[int | str] | None":
    """Return a literal, a list of them, or a cast of these; None: something else."""
    if isinstance(value, Call) and value.operator == "tract_core_cast" and len(value.positional) == 1:
        return _read_literals(value.positional[0])
    if not isinstance(value, list):
        value = [value]
    literals = [_literal(item) for item in value]
    return None if None in literals else cast("list[int | str]", literals)


def _literal(value: Expression) -> int | str | None:
    if isinstance(value, Unary) and value.sign == "-" and isinstance(value.operand, int):
        return -value.operand
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None


def read_metadata(
    properties: Properties,
    title: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    states: Sequence[StateMetadata],
) -> StreamMetadata:
    """Return what ``properties_fragment`` wrote, with the states of the file.

    Raises LoadError: they do not fit the file.
    """

    def column(name: str, count: int) -> list[Any]:
        values = properties.get(name, [])
        if len(values) != count:
            raise LoadError(
                f"{title}: the property {name} has {count_of(len(values), 'value')} where {count} are needed; write "
                "the file again"
            )
        return values

    def ports(names: Sequence[str], role: str, delay: str) -> tuple[PortMetadata, ...]:
        columns = (
            column(name, len(names))
            for name in (f"pulse.{role}_axes", delay, f"pulse.{role}_rates", f"pulse.{role}_lengths")
        )
        rows = zip(names, *columns)
        return tuple(
            PortMetadata(name, None if int(axis) < 0 else int(axis), int(delay_text), str(rate), str(length))
            for name, axis, delay_text, rate, length in rows
        )

    end = properties.get("pulse.end")
    stream_input_names = [name for name in inputs if end is None or name != end[0]]
    counts = len(properties.get("pulse.await_frames", []))
    awaits = zip(*(column(f"pulse.await_{name}", counts) for name in ("frames", "offsets", "lengths")))
    try:
        return StreamMetadata(
            symbol=str(column(SYMBOL_PROPERTY, 1)[0]),
            pulse=int(column(FRAMES_PROPERTY, 1)[0]),
            inputs=ports(stream_input_names, "input", "pulse.input_delay"),
            outputs=ports(outputs, "output", DELAY_PROPERTY),
            states=tuple(states),
            end=None if end is None else str(end[0]),
            awaits=tuple(
                AwaitedMetadata(int(frames), int(offset), str(length)) for frames, offset, length in awaits
            ),
            assumptions=tuple(str(text) for text in properties.get("pulse.assumptions", [])),
        )
    except ValueError as error:
        raise LoadError(f"{title}: its stream properties cannot be read ({error}); write it again") from error
