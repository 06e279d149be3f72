"""The control block of a pipeline, and what lies beside it: what callback, worker and Python share.

Each group of fields has one writer, and begins on a cache line of its own.
"""

from pulse.jit.fields import starts_line
from pulse.jit.structs import Struct, bytes_of, struct_at
from pulse.program.table.memory import align


class Side(Struct):
    """A side of the device; its callback writes it."""

    callbacks: int = starts_line()
    last_ns: int
    longest_gap_ns: int
    input_underflows: int
    input_overflows: int
    output_underflows: int
    output_overflows: int
    callback_times: int  # histograms; written by Python
    interval_times: int
    # Of the last call: the time since its first input sample was captured, and until its first output sample is
    # played; 0 if the device does not state it.
    input_age_s: float
    played_in_s: float
    block_position: int  # of the first frame of the last block, in the ring of input or of output
    block_time_ns: int  # when that block came; 0: there was none, or its position is just being written


class ControlBlock(Struct):
    """The fields of a pipeline."""

    # Settings: written by Python before anything runs.
    virtual_clock: int = starts_line()  # 1: the time is ``virtual_now_ns``, which a test sets
    virtual_now_ns: int
    engine: int  # IN_CALLBACK or ON_WORKER
    policy: int
    wake: int  # descriptor that wakes the worker, to write; -1: none
    wait: int  # the same, to read
    in_channels: int
    in_ring: int  # address of float32 [in_ring_frames, in_channels]
    in_ring_frames: int  # a power of two
    out_channels: int  # 0: nothing is played
    out_ring: int
    out_ring_frames: int
    played_ring: int  # address of float32 [out_ring_frames, out_channels]: what was played, silence included
    marks: int  # address of the marks
    mark_count: int  # a power of two
    streams: int
    stream_inputs: int  # address of the inputs of the first stream
    pulse: int  # frames of the model
    largest_output: int  # the most frames that a pulse adds to the ring of output
    deadline_ns: int
    gains: int  # address
    records: int  # address of the ring of records
    record_count: int  # a power of two
    record_bytes: int
    piece_frames: int  # device frames that are taken at a time
    scratch: int  # address of float32 [piece_frames]
    in_rate: int  # Hz
    out_rate: int
    drift: int  # address of the ``drift.Drift``; 0: one clock
    total_times: int  # histograms
    waiting_times: int
    compute_times: int
    output_bytes: int  # of one stream's outputs in a record
    pump: int  # addresses of C functions: run all pulses that are there, run the one in the slots
    run_pulse: int
    rate: int  # of the model, Hz
    block: int  # frames that are played at once, if all blocks are alike
    block_ns: int
    # The longest block for which the delay suffices, if the sizes of blocks are not known before; else -1.
    planned_block_frames: int
    input_count: int  # sounds that each stream takes

    # The device: the side that brings input, also if it takes output; and one that only takes output.
    input_side: Side
    output_side: Side

    # Capture.
    frames_in: int = starts_line()
    frames_lost: int
    in_written: int
    marks_written: int

    # Worker.
    in_read: int = starts_line()
    marks_read: int
    out_written: int
    filled: int
    pulses: int
    pulses_dropped: int
    missed: int
    nonfinite: int
    status: int
    records_written: int
    records_lost: int
    instances: int  # address of the first instance
    next_instances: int  # 0: there are none
    priming: int  # pulses that the next instances run along before they are played
    compute_ns: int
    begun_ns: int  # when computing the pulse in the slots began
    pulse_dropped: int  # 1: the pulse in the slots is not computed
    saved: int  # pulses that the states had had when they were saved
    loads: int  # how often states were loaded
    loaded: int  # pulses that those had had, less ``pulses`` at that time
    initial_frames: int  # frames of silence that were written to the ring of output: they are the delay
    last_compute_ns: int
    expected_ns: int  # what a pulse is expected to take: the shorter of the last two; half of it after one was left out
    faults: int  # values for which a node of the model that is played had no result

    # Player; nothing is counted, and all is silence, until more than ``anchor`` frames have come in, which go to the
    # ring of input from ``anchor_place`` on. The worker writes here when it restarts: no device is open then.
    out_read: int = starts_line()
    frames_out: int
    frames_silent: int
    frames_skipped: int
    anchor: int
    anchor_place: int
    uncompensated_frames: int  # the part of the underrun compensation that is not skipped
    frames_cut: int  # left out so that the output has the agreed delay
    longest_block: int  # frames
    # Silence that was added to the delay since the start, see ``planned_block_frames``.
    delay_growth_frames: int

    # Python: a command and its arguments; the thread that applies it sets it to TAKEN, and to NONE when it is done.
    command: int = starts_line()
    argument_memory: int  # an address
    argument_number: int  # pulses
    stop: int
    records_read: int


class StreamInput(Struct):
    """One of the ``input_count`` inputs of a stream; from ``out_resampler`` on only the first one counts."""

    channel: int
    slot_in: int
    in_resampler: int
    out_resampler: int
    dry: int
    dry_delay_line: int
    dry_frames: int
    dry_place: int


class Instance(Struct):
    """One stream's state in one program."""

    packed: int = starts_line()  # address of the call
    slot_out: int
    sound: int  # byte of the sound in the outputs
    sound_out: int  # address of float32 [pulse]: what of it is played
    delay_left: int  # frames of the model's delay that are still to come
    delay_line: int  # address of float32 [delay_line_frames]: what makes delays of programs equal
    delay_line_frames: int
    delay_line_place: int
    memory: int
    memory_bytes: int
    ran: int  # pulses that the state has had
    limit: int  # how many it may have
    delay: int  # frames of the model's delay


class Mark(Struct):
    """How many frames had been accepted at a time."""

    frames: int
    at_ns: int


class Gains(Struct):
    """Factors of the model's sound and of the input: now, what Python wants, and of that what this pulse goes to."""

    model: float
    bypass: float
    wanted_model: float
    wanted_bypass: float
    next_model: float
    next_bypass: float


class RecordHeader(Struct):
    """What a record begins with, in front of the outputs."""

    pulse: int
    arrived_ns: int
    ready_ns: int
    loads: int
    before: int  # pulses that the states were loaded with, and that came since then


RECORD_HEADER_BYTES = align(bytes_of(RecordHeader))
control_at, inputs_at, instances_at = struct_at(ControlBlock), struct_at(StreamInput), struct_at(Instance)
marks_at, gains_at, header_at = struct_at(Mark), struct_at(Gains), struct_at(RecordHeader)

IN_CALLBACK, ON_WORKER = range(2)
WAIT, DROP_OLDEST, SILENCE_THEN_CATCH_UP, ABORT = range(4)
RUNNING, WAS_LATE, LIMIT_REACHED = range(3)
NONE, SAVE, LOAD, SWAP, RESTART, TAKEN = range(6)
