# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""The model: a pulse of every stream, and two programs of which one takes over."""

from pulse.program.kernels.address import bytes_at, floats_at, words_at
from pulse.program.kernels.pointer import Pointer
from pulse.program.kernels.raw import as_u8, fill_bytes, move_bytes
from pulse.program.kernels.registry import device
from pulse.program.packed import packed_step, take_faults
from streaming.native import line_words as w
from streaming.native.device_side import FLOAT, now_ns
from streaming.native.histogram import record
from streaming.native.mixing import cross, delayed
from streaming.native.primitives import store
from streaming.native.pulse_in import stream_at


@device
def run_instances(words: Pointer, instances: int) -> None:
    """One pulse of the model for every stream; what the model's delay makes invalid is silent."""
    pulse, sound = words[w.PULSE], words[w.OUT_CHANNELS] > 0
    for s in range(words[w.STREAMS]):
        instance = words_at(instances) + s * w.INSTANCE_WORDS
        stream = stream_at(words, s)
        packed_step(words_at(instance[w.PACKED]), stream[w.SLOT_IN], instance[w.SLOT_OUT])
        faults = take_faults(words_at(instance[w.PACKED]))
        if instances == words[w.INSTANCES]:
            words[w.FAULTS] = words[w.FAULTS] + faults
        instance[w.RAN] = instance[w.RAN] + 1
        if sound:
            heard = floats_at(instance[w.HEARD])
            move_bytes(as_u8(heard), bytes_at(instance[w.SLOT_OUT] + instance[w.SOUND]), pulse * FLOAT)
            invalid = min(instance[w.DELAY_LEFT], pulse)
            if invalid > 0:
                fill_bytes(as_u8(heard), 0, invalid * FLOAT)
                instance[w.DELAY_LEFT] = instance[w.DELAY_LEFT] - invalid
            instance[w.DELAY_LINE_PLACE] = delayed(
                heard,
                pulse,
                floats_at(instance[w.DELAY_LINE]),
                instance[w.DELAY_LINE_FRAMES],
                instance[w.DELAY_LINE_PLACE],
            )


@device
def silence_instances(words: Pointer) -> None:
    """A pulse that is not computed."""
    for s in range(words[w.STREAMS]):
        instance = words_at(words[w.INSTANCES]) + s * w.INSTANCE_WORDS
        fill_bytes(bytes_at(instance[w.SLOT_OUT]), 0, words[w.OUTPUT_BYTES])
        fill_bytes(bytes_at(instance[w.HEARD]), 0, words[w.PULSE] * FLOAT)


@device
def change_instances(words: Pointer) -> None:
    """The next instances have run along; when they are primed, fade over within this pulse."""
    words[w.PRIMING] = words[w.PRIMING] - 1
    if words[w.PRIMING] > 0:
        return
    if words[w.OUT_CHANNELS] > 0:
        for s in range(words[w.STREAMS]):
            old = words_at(words[w.INSTANCES]) + s * w.INSTANCE_WORDS
            new = words_at(words[w.NEXT_INSTANCES]) + s * w.INSTANCE_WORDS
            cross(floats_at(new[w.HEARD]), floats_at(old[w.HEARD]), words[w.PULSE])
    words[w.INSTANCES] = words[w.NEXT_INSTANCES]
    store(words, w.NEXT_INSTANCES, 0)  # not before the other: Python asks for this one first


@device
def compute(words: Pointer, begun: int, arrived: int) -> None:
    """Run the model, for the next instances too where there are some."""
    heard, runs = words[w.INSTANCES], words[w.INSTANCES]
    while runs != 0:
        run_instances(words, runs)
        runs = words[w.NEXT_INSTANCES] if runs == heard else 0
    if words[w.NEXT_INSTANCES] != 0:
        change_instances(words)
    computed = now_ns(words)
    record(words_at(words[w.COMPUTE_TIMES]), computed - begun)
    record(words_at(words[w.WAITING_TIMES]), begun - arrived)
    words[w.COMPUTE_NS] = words[w.COMPUTE_NS] + (computed - begun)
    words[w.EXPECTED_NS] = min(computed - begun, words[w.LAST_COMPUTE_NS])
    words[w.LAST_COMPUTE_NS] = computed - begun
