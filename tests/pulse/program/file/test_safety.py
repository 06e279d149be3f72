"""The check of untrusted tables: it accepts all tables of pulse, and no kernel exceeds its declared reach."""

from collections import Counter
from itertools import islice
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.errors import CompileError, LoadError
from pulse.facts import Array
from pulse.jit.registry import KERNELS, kernel_of
from pulse.jit.rows.instruction import Instruction, Operand, RowFields, fields_of, writes
from pulse.jit.rows.pointer import ARENA, STATE, WEIGHTS, Pointer, operand
from pulse.jit.rows.reach import CheckedInstruction, TableCheck
from pulse.jit.rows.span import Located
from pulse.program.file.safety import require_safe
from pulse.program.native.native_program import NativeProgram
from pulse.program.table.table import row_starts
from pulse.support.mapping import aligned_bytes
from tests.failed_cases import FailedCases
from tests.pulse.cases.build import floats, model, node
from tests.pulse.cases.families import FAMILIES, cases
from tests.pulse.program.programs import FORMS, MODELS, program
from tests.pulse.program.static_models import fixed_specs, static_model
from tests.pulse.program.weight_models import STACKS, stack

EACH = 12
"""The default suite runs one of this many cases of a family as plain Python."""


def limited_row(checked: CheckedInstruction, memories: list[Array]) -> Any:
    """The row with pointers limited to their declared reach: an access beyond is an IndexError."""
    bounds: dict[int, tuple[int, int]] = {}
    for pointer, span in checked.reaches:
        if not span.empty:
            low, stop = pointer.start + span.low, pointer.start + span.last + 1
            before = bounds.get(id(pointer), (low, stop))
            bounds[id(pointer)] = min(low, before[0]), max(stop, before[1])

    def short(pointer: Located) -> Pointer:
        low, stop = bounds.get(id(pointer), (0, 0))
        memory, dtype = memories[pointer.region], pointer.elements.dtype
        elements = memory[: len(memory) // dtype.itemsize * dtype.itemsize].view(dtype)
        return Pointer(elements[low:stop], pointer.start - low)

    def shorten(part: RowFields) -> RowFields:
        for name, value in vars(part).items():
            if isinstance(value, Located):
                vars(part)[name] = short(value)
            elif isinstance(value, RowFields):
                shorten(value)
            elif isinstance(value, list):
                vars(part)[name] = [shorten(value_of_part) for value_of_part in value]
        return part

    return shorten(checked.row)


def run_limited(program_run: NativeProgram, feeds: dict[str, Array], ran: Counter[str]) -> dict[str, Array]:
    """Run a step in plain Python, each row limited to its declared reach."""
    memories = [
        np.array(program_run.weights),
        program_run.initial.copy(),
        np.zeros(program_run.arena_bytes, np.uint8),
    ]
    for name, place in program_run.input_places:
        place.view(memories[place.region])[...] = feeds[name]
    check = TableCheck(program_run.weights, program_run.initial, program_run.arena_bytes)
    for start in row_starts(program_run.unlinked):
        words = program_run.unlinked[start : start + int(program_run.unlinked[start + 1])].tolist()
        kernel = kernel_of(words[0])
        row = limited_row(check.check_row(kernel.instruction, kernel.form, words), memories)
        with np.errstate(all="ignore"):
            kernel.function(row)
        ran[kernel.name] += 1
    return {name: place.view(memories[place.region]).copy() for name, place in program_run.output_places}


@pytest.mark.parametrize("family", FAMILIES)
def test_some_programs_of_a_family_stay_inside(family: str) -> None:
    assert_inside(family, EACH)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_every_program_of_a_family_stays_inside(family: str) -> None:
    assert_inside(family, 1)


def assert_inside(family: str, every: int) -> None:
    ran: Counter[str] = Counter()
    failed = FailedCases()
    for name, proto, feeds in islice(cases(family), every // 2, None, every):
        typed = pulse.load(proto, inputs=fixed_specs(feeds)).model.analyse()
        try:
            static_program = NativeProgram(static_model(typed))
        except CompileError:
            continue
        require_safe(static_program)
        expected = static_program.spawn(feeds).step({})
        with failed.collect(name):
            for output, values in run_limited(static_program, feeds, ran).items():
                np.testing.assert_allclose(values, expected[output], 1e-4, 1e-5)
    assert not failed, "\n".join(failed)
    assert ran, "none of the cases has a program"


@pytest.mark.parametrize(("backend", "form"), [pair for pair in FORMS if pair[0] == "numba"])
@pytest.mark.parametrize("name", [name for name in MODELS if name != "foreign"])
def test_programs_of_streams_are_safe(name: str, backend: str, form: str) -> None:
    stream_program = program(name, backend, form)
    assert isinstance(stream_program, NativeProgram)
    require_safe(stream_program)


@pytest.mark.parametrize("form", ["int8", "bf16"])
@pytest.mark.parametrize("name", STACKS)
def test_rows_of_codes_stay_inside(name: str, form: str) -> None:
    stream_program = pulse.stream(stack(name), pulse=4, weights=form, activations=form)
    assert isinstance(stream_program, NativeProgram)
    require_safe(stream_program)
    feeds, ran = {port.name: floats("feed", *port.shape) for port in stream_program.inputs}, Counter[str]()
    expected = stream_program.spawn().step(feeds)
    for output, values in run_limited(stream_program, feeds, ran).items():
        np.testing.assert_allclose(values, expected[output], 1e-5, 1e-6)
    assert any("codes" in kernel for kernel in ran)


def test_a_plugin_kernel_that_declares_its_reach_is_safe() -> None:
    plugin_program = program("foreign")
    assert isinstance(plugin_program, NativeProgram)
    require_safe(plugin_program)


class Silent(Instruction):
    """y = 1, without the extent of y."""

    y: Operand = writes("f32")
    n: int


def test_an_operand_without_a_number_of_elements_is_refused() -> None:
    check = TableCheck(np.zeros(64, np.uint8), np.zeros(64, np.uint8), 64)
    with pytest.raises(ValueError, match="it does not declare how far it reaches into y"):
        check.check_row(Silent, "f32", [0, 4, operand(ARENA, 0), 3])


def words_of(native: NativeProgram, kernel: str) -> tuple[int, list[int]]:
    """The first row of a kernel: where it begins, and its words."""
    start = next(s for s in row_starts(native.unlinked) if kernel_of(int(native.unlinked[s])).name == kernel)
    return start, native.unlinked[start : start + int(native.unlinked[start + 1])].tolist()


@pytest.mark.parametrize(
    ("kernel", "field", "value", "message"),
    [
        pytest.param(
            "product", "y", operand(WEIGHTS, 0), "the weights would be written", id="weights as output"
        ),
        pytest.param("product", "y", operand(STATE, 1 << 40), "elements .* of", id="output past the end"),
        pytest.param("product", "x", operand(ARENA, 2), "not aligned", id="unaligned input"),
        pytest.param("product", "x", operand(5, 0), "no memory 5", id="unknown memory"),
        pytest.param("product", "x", -1, "no memory -1", id="negative memory"),
        pytest.param(
            "product",
            "rows_x",
            operand(ARENA, 0),
            "a table of offsets that rows may change",
            id="table that rows change",
        ),
        pytest.param("product", "M", -1, "a count of -1", id="negative count"),
        pytest.param("product", "M", 1 << 30, "elements|table", id="huge count"),
        pytest.param("product", "K", 1 << 40, "K is 1099511627776", id="huge depth"),
        pytest.param("chain", "s0", 1 << 31, "elements|too long", id="huge chain operand"),
        pytest.param("chain", "op_count", 1 << 20, "of ops", id="too many ops"),
        pytest.param("move", "bytes", 1 << 30, "elements .* of", id="huge move"),
        pytest.param("tick", "clock", operand(STATE, 0) + 4, "not aligned", id="unaligned clock"),
    ],
)
def test_rows_that_reach_outside_are_refused(kernel: str, field: str, value: int, message: str) -> None:
    native = program("windows")
    assert isinstance(native, NativeProgram)
    _, words = words_of(native, kernel)
    declared = KERNELS[kernel].instruction
    index = next(i for i, (name, _) in enumerate(named_fields(declared)) if name == field) + declared.START
    words[index] = value
    check = TableCheck(native.weights, native.initial, native.arena_bytes)
    with pytest.raises(ValueError, match=message):
        check.check_row(declared, "f32", words)


@pytest.mark.parametrize(
    ("table", "value", "message"),
    [
        ("starts", -1, "before the first input"),
        ("starts", 129, "beyond the last input"),
        ("counts", -1, "before the first input"),
        ("counts", 130, "beyond the last input"),
        ("counts", 0, "other sizes than their weights"),
    ],
)
def test_bands_outside_of_inputs_or_weights_are_refused(table: str, value: int, message: str) -> None:
    bank = np.zeros((129, 40), np.float32)
    bank[np.arange(40) * 3, np.arange(40)] = floats("bank", 40)
    proto = model([node("MatMul", "x bank")], {"x": floats("x", 1, 8, 129)}, {"bank": bank}, stream={"x": 1})
    native = pulse.stream(proto, pulse=1)
    assert isinstance(native, NativeProgram)
    _, words = words_of(native, "product_banded")
    declared = KERNELS["product_banded"].instruction
    index = next(i for i, (name, _) in enumerate(named_fields(declared)) if name == table) + declared.START
    weights = native.weights.copy()
    TableCheck(weights, native.initial, native.arena_bytes).check_row(declared, "f32", words)
    weights[words[index] :][:8].view(np.int64)[0] = value
    with pytest.raises(ValueError, match=message):
        TableCheck(weights, native.initial, native.arena_bytes).check_row(declared, "f32", words)


def named_fields(declared: type[RowFields]) -> list[tuple[str, Any]]:
    """The fields of a declaration, each of one word as far as the tests ask for them."""
    return list(fields_of(declared).items())


def test_a_row_over_the_clock_is_refused() -> None:
    """Otherwise the row could set the clock to a number whose products exceed an int64."""
    native = program("windows")
    assert isinstance(native, NativeProgram)
    start, words = words_of(native, "move")
    table = native.unlinked.copy()
    assert [name for name, _ in named_fields(KERNELS["move"].instruction)] == ["dst", "src", "bytes"]
    table[start + 2], table[start + 4] = operand(STATE, 0), min(words[4], 16)
    other = NativeProgram(native.network)
    other.unlinked = table
    with pytest.raises(LoadError, match="overlap a word of time"):
        require_safe(other)


def test_a_clock_that_has_begun_is_refused() -> None:
    native = program("windows")
    assert isinstance(native, NativeProgram)
    other = NativeProgram(native.network)
    image = aligned_bytes(native.initial.size)
    image[:] = native.initial
    image[:8].view(np.int64)[0] = 1 << 60
    other.initial = image
    with pytest.raises(LoadError, match="clock begins with 1152921504606846976"):
        require_safe(other)
