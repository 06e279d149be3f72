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
def run_voices(words: Pointer, voices: int) -> None:
    """One pulse of the model for every stream; what the model's delay makes invalid is silent."""
    pulse, sound = words[w.PULSE], words[w.OUT_CHANNELS] > 0
    for s in range(words[w.STREAMS]):
        voice = words_at(voices) + s * w.VOICE_WORDS
        stream = stream_at(words, s)
        packed_step(words_at(voice[w.PACKED]), stream[w.SLOT_IN], voice[w.SLOT_OUT])
        faults = take_faults(words_at(voice[w.PACKED]))
        if voices == words[w.VOICES]:
            words[w.FAULTS] = words[w.FAULTS] + faults
        voice[w.RAN] = voice[w.RAN] + 1
        if sound:
            heard = floats_at(voice[w.HEARD])
            move_bytes(as_u8(heard), bytes_at(voice[w.SLOT_OUT] + voice[w.SOUND]), pulse * FLOAT)
            invalid = min(voice[w.DELAY_LEFT], pulse)
            if invalid > 0:
                fill_bytes(as_u8(heard), 0, invalid * FLOAT)
                voice[w.DELAY_LEFT] = voice[w.DELAY_LEFT] - invalid
            voice[w.LINE_PLACE] = delayed(
                heard, pulse, floats_at(voice[w.LINE]), voice[w.LINE_FRAMES], voice[w.LINE_PLACE]
            )


@device
def silence_voices(words: Pointer) -> None:
    """A pulse that is not computed."""
    for s in range(words[w.STREAMS]):
        voice = words_at(words[w.VOICES]) + s * w.VOICE_WORDS
        fill_bytes(bytes_at(voice[w.SLOT_OUT]), 0, words[w.OUTPUT_BYTES])
        fill_bytes(bytes_at(voice[w.HEARD]), 0, words[w.PULSE] * FLOAT)


@device
def change_voices(words: Pointer) -> None:
    """The next voices have run along; when they are primed, fade over within this pulse."""
    words[w.PRIMING] = words[w.PRIMING] - 1
    if words[w.PRIMING] > 0:
        return
    if words[w.OUT_CHANNELS] > 0:
        for s in range(words[w.STREAMS]):
            old = words_at(words[w.VOICES]) + s * w.VOICE_WORDS
            new = words_at(words[w.NEXT_VOICES]) + s * w.VOICE_WORDS
            cross(floats_at(new[w.HEARD]), floats_at(old[w.HEARD]), words[w.PULSE])
    words[w.VOICES] = words[w.NEXT_VOICES]
    store(words, w.NEXT_VOICES, 0)  # not before the other: Python asks for this one first


@device
def compute(words: Pointer, begun: int, arrived: int) -> None:
    """Run the model, for the next voices too where there are some."""
    heard, runs = words[w.VOICES], words[w.VOICES]
    while runs != 0:
        run_voices(words, runs)
        runs = words[w.NEXT_VOICES] if runs == heard else 0
    if words[w.NEXT_VOICES] != 0:
        change_voices(words)
    computed = now_ns(words)
    record(words_at(words[w.COMPUTE_TIMES]), computed - begun)
    record(words_at(words[w.WAITING_TIMES]), begun - arrived)
    words[w.COMPUTE_NS] = words[w.COMPUTE_NS] + (computed - begun)
    words[w.EXPECTED_NS] = min(computed - begun, words[w.LAST_COMPUTE_NS])
    words[w.LAST_COMPUTE_NS] = computed - begun
