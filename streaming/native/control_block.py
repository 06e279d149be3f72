"""The control block of a pipeline, and related structs: the memory that callback, worker and Python share.

Each group of fields has one writer, and begins on a cache line of its own.
"""

from pulse.jit.language.structs import Struct, bytes_of, struct_at
from pulse.jit.rows.fields import starts_line
from pulse.program.table.memory import align


class Side(Struct):
    """One side of the device; written by its callback."""

    callbacks: int = starts_line()
    last_ns: int
    longest_gap_ns: int
    input_underflows: int
    input_overflows: int
    output_underflows: int
    output_overflows: int
    callback_times: int  # histograms; written by Python
    interval_times: int
    # For the last call: the time since its first input sample was captured, and until its first output sample is
    # played; 0 if the device does not report it.
    input_age_s: float
    played_in_s: float
    block_position: int  # position of the first frame of the last block, in the ring of input or of output
    block_time_ns: int  # arrival of that block; 0: no block yet, or its position is being written


class ControlBlock(Struct):
    """The fields of a pipeline."""

    # Settings: written by Python before anything runs.
    virtual_clock: int = starts_line()  # 1: the time is ``virtual_now_ns``, set by a test
    virtual_now_ns: int
    engine: int  # IN_CALLBACK or ON_WORKER
    policy: int
    wake: int  # write descriptor that wakes the worker; -1: none
    wait: int  # its read descriptor
    in_channels: int
    in_ring: int  # address of float32 [in_ring_frames, in_channels]
    in_ring_frames: int  # a power of two
    out_channels: int  # 0: nothing is played
    out_ring: int
    out_ring_frames: int
    played_ring: int  # address of float32 [out_ring_frames, out_channels]: the played sound, with silence
    marks: int  # address of the marks
    mark_count: int  # a power of two
    streams: int
    stream_inputs: int  # address of the inputs of the first stream
    pulse_frames: int
    largest_output: int  # the most frames that a pulse adds to the ring of output
    deadline_ns: int
    gains: int  # address
    records: int  # address of the ring of records
    record_count: int  # a power of two
    record_bytes: int
    piece_frames: int  # device frames that are processed at a time
    scratch: int  # address of float32 [piece_frames]
    rate_in_hz: int
    rate_out_hz: int
    drift: int  # address of the ``drift.Drift``; 0: one clock
    total_times: int  # histograms
    waiting_times: int
    compute_times: int
    output_bytes: int  # the bytes of one stream's outputs in a record
    pump: int  # addresses of C functions: run all complete pulses; run the pulse in the slots
    run_pulse: int
    rate_hz: int  # of the model
    block_frames: int  # of a played block, if all blocks have one size
    block_ns: int
    # The longest block for which the delay suffices, if block sizes are not known in advance; else -1.
    planned_block_frames: int
    input_count: int  # sound inputs of each stream

    # The device: the side with input, and perhaps output; and a side with output only.
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
    priming: int  # pulses that the next instances compute before they are played
    compute_ns: int
    begun_ns: int  # when the computation of the pulse in the slots began
    pulse_dropped: int  # 1: the pulse in the slots is not computed
    saved: int  # the number of pulses of the states when they were saved
    loads: int  # how often states were loaded
    loaded: int  # the number of pulses of those states, less ``pulses`` at that time
    initial_frames: int  # frames of silence that were written to the ring of output as delay
    last_compute_ns: int
    expected_ns: int  # expected time of a pulse: the shorter of the last two; halved when one is dropped
    faults: int  # values for which a node of the played model had no result

    # Player. It plays silence and counts nothing until more than ``anchor`` frames have arrived; they go to the ring of
    # input from ``anchor_position`` on. The worker writes here at a restart, when no device is open.
    out_read: int = starts_line()
    frames_out: int
    frames_silent: int
    frames_skipped: int
    anchor: int
    anchor_position: int
    frames_before_restart: int  # delay from underruns that the last restart of a device removed
    frames_cut: int  # frames that were skipped so that the output has the agreed delay
    longest_block: int  # frames
    # Silence that was added to the delay since the start, see ``planned_block_frames``.
    delay_growth_frames: int

    # Python: a command and its arguments. The thread that applies it sets it to TAKEN, and to NONE when done.
    command: int = starts_line()
    argument_memory: int  # an address
    argument_number: int  # pulses
    stop: int
    records_read: int


class StreamInput(Struct):
    """One of the ``input_count`` inputs of a stream; only the first uses those from ``out_resampler`` on."""

    channel: int
    slot_in: int
    in_resampler: int
    out_resampler: int
    dry: int
    dry_delay_line: int
    dry_frames: int
    dry_index: int


class Instance(Struct):
    """One stream's state in one program."""

    packed: int = starts_line()  # address of the call
    slot_out: int
    sound: int  # byte offset of the sound in the outputs
    sound_out: int  # address of float32 [pulse]: the part of it that is played
    delay_left: int  # remaining frames of the model's delay
    delay_line: int  # address of float32 [delay_line_frames], which equalises the delays of programs
    delay_line_frames: int
    delay_line_index: int
    memory: int
    memory_bytes: int
    ran: int  # pulses that the state has run
    limit: int  # the most pulses that it may run
    delay: int  # frames of the model's delay


class Mark(Struct):
    """The number of frames that had been accepted at a time."""

    frames: int
    at_ns: int


class Gains(Struct):
    """The gains of the model's sound and of the input: present, requested by Python, and at the end of this pulse."""

    model: float
    bypass: float
    wanted_model: float
    wanted_bypass: float
    next_model: float
    next_bypass: float


class RecordHeader(Struct):
    """The header of a record, followed by the outputs."""

    pulse: int
    arrived_ns: int
    ready_ns: int
    loads: int
    state_pulses: int  # pulses of the states when loaded, and since then


RECORD_HEADER_BYTES = align(bytes_of(RecordHeader))
control_at, inputs_at, instances_at = struct_at(ControlBlock), struct_at(StreamInput), struct_at(Instance)
marks_at, gains_at, header_at = struct_at(Mark), struct_at(Gains), struct_at(RecordHeader)

IN_CALLBACK, ON_WORKER = range(2)
WAIT, DROP_OLDEST, SILENCE_THEN_CATCH_UP, ABORT = range(4)
RUNNING, WAS_LATE, LIMIT_REACHED = range(3)
NONE, SAVE, LOAD, SWAP, RESTART, TAKEN = range(6)
