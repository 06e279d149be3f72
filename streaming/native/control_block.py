"""The control block of a pipeline, and related structs: the memory that callback, worker and Python share.

Each group of fields has one writer at a time, and begins on a cache line of its own; ``command`` changes hands by
compare-and-swap.
"""

from pulse.jit.language.structs import Struct, bytes_of, struct_at
from pulse.jit.rows.fields import starts_line
from pulse.program.table.memory import align


class Side(Struct):
    """One side of the device; written by its callback.

    callbacks                       its calls so far
    last_ns                         the time of the last call
    longest_gap_ns                  the longest time from one call to the next
    input_underflows, input_overflows, output_underflows, output_overflows  as the audio system reports them
    callback_times, interval_times  histograms; their addresses are written by Python
    input_age_s, played_in_s        the time since the first input sample of the last call was captured, and until its
                                    first output sample is played; 0 if the device does not report it
    block_position                  position of the first frame of the last block, in the input ring or the output ring
    block_time_ns                   arrival of that block; 0: no block yet, or its position is being written
    """

    callbacks: int = starts_line()
    last_ns: int
    longest_gap_ns: int
    input_underflows: int
    input_overflows: int
    output_underflows: int
    output_overflows: int
    callback_times: int
    interval_times: int
    input_age_s: float
    played_in_s: float
    block_position: int
    block_time_ns: int


class ControlBlock(Struct):
    """The fields of a pipeline, in groups of one writer.

    Settings, written by Python before anything runs:

    virtual_clock          1: the time is ``virtual_now_ns``, set by a test
    virtual_now_ns         that time
    engine                 IN_CALLBACK or ON_WORKER
    policy                 WAIT, DROP_OLDEST, SILENCE_THEN_CATCH_UP or ABORT
    wake, wait             descriptors: to wake the worker (-1: none), and to wait in it
    in_channels            the channels of the device
    in_ring                address of float32 [in_ring_frames, in_channels]
    in_ring_frames         a power of two
    out_channels           0: nothing is played
    out_ring               address of float32 [out_ring_frames, out_channels]
    out_ring_frames        a power of two
    played_ring            address of float32 [out_ring_frames, out_channels]: the played sound, with silence
    arrivals, arrival_count  address of the arrivals, and their number, a power of two
    slots, slot_bytes      address of the packed inputs of the first stream, and the bytes of each stream's
    stream_count           the number of streams, which run side by side
    inputs                 address of the first input of the first stream
    input_count            the number of input channels of each stream
    outputs                address of the first output of the first stream
    output_count           the number of channels that each stream plays
    pulse_frames           the model's frames in each pulse
    max_output_frames      the most frames that a pulse adds to the output ring
    deadline_ns            the time after the arrival of its last frame at which a pulse counts as missed
    gains                  address of the ``Gains``
    records, record_count  address of the ring of records, and their number, a power of two
    record_bytes           the bytes of a record: its header and all outputs
    piece_frames           device frames that are processed at a time
    scratch                address of float32 [piece_frames]
    rate_in_hz, rate_out_hz  sample rates of the input and the output device
    drift                  address of the ``drift.Drift``; 0: one clock
    total_times, waiting_times, compute_times  addresses of histograms
    output_bytes           the bytes of one stream's outputs in a record
    pump                   address of the C function that runs all complete pulses
    run_pulse              address of the C function that runs the pulse in the slots
    rate_hz                sample rate of the model
    block_frames, block_ns  size and duration of a played block, if all blocks have one size
    planned_block_frames   the longest block for which the delay suffices, if block sizes are not known; else -1

    The device:

    input_side             the side with input, and perhaps output
    output_side            a side with output only

    Capture. Positions count the frames that were written to a ring, or read from it, since the start:

    frames_in              frames of the device, lost ones too
    frames_lost            frames that did not fit into the input ring
    in_written             position in the input ring after its last frame
    arrivals_written       the number of arrivals so far

    The worker:

    in_read                position in the input ring of the next frame
    arrivals_read          the number of arrivals that are no longer needed
    out_written            position in the output ring after its last frame
    filled_frames          frames that are in the slots of the next pulse
    pulses                 pulses that were finished, dropped ones too
    pulses_dropped         pulses that were not computed, being late
    missed                 pulses that were finished after ``deadline_ns``
    nonfinite              samples of the model that were NaN or infinite
    status                 RUNNING, WAS_LATE or LIMIT_REACHED
    records_written        the number of records so far
    records_lost           pulses whose record did not fit into the ring of records
    instances              address of the first instance
    next_instances         address of the first instance of the next program; 0: there is none
    priming                pulses that the next instances compute before they are played
    compute_ns             the time of all computed pulses
    begun_ns               when the computation of the pulse in the slots began
    pulse_dropped          1: the pulse in the slots is not computed
    saved_state_pulses     pulses that the states had run when they were saved
    load_count             how often states were loaded
    state_pulse_offset     pulses that the states have run, less ``pulses``; loading states sets it
    initial_frames         frames of silence that were written to the output ring as delay
    last_compute_ns        the time of the last computed pulse
    expected_ns            expected time of a pulse: the shorter of the last two; halved when one is dropped
    faults                 values for which a node of the played model had no result

    The player. The worker writes here at a restart, when no device is open:

    out_read               position in the output ring of the next frame
    frames_out             frames that were played, silence included
    frames_silent          silent frames that were played because nothing was ready
    frames_skipped         frames that were ready too late, and not played
    anchor                 ``frames_in`` at the restart: until more arrive, silence is played and nothing counted
    anchor_position        position in the input ring of the first of these frames
    frames_before_restart  delay from underruns that the last restart of a device removed
    frames_cut             frames that were skipped so that the output has the planned delay
    longest_block_frames   the longest block so far
    delay_growth_frames    silence that was added to the delay since the start, see ``planned_block_frames``

    Python: a command and its arguments:

    command                SAVE, LOAD, SWAP or RESTART; its thread sets it to TAKEN, and at the end to NONE
    argument_memory        an address
    argument_number        a number of pulses
    stop                   1: the worker ends
    records_read           the number of records that Python has read
    """

    # Settings
    virtual_clock: int = starts_line()
    virtual_now_ns: int
    engine: int
    policy: int
    wake: int
    wait: int
    in_channels: int
    in_ring: int
    in_ring_frames: int
    out_channels: int
    out_ring: int
    out_ring_frames: int
    played_ring: int
    arrivals: int
    arrival_count: int
    slots: int
    slot_bytes: int
    stream_count: int
    inputs: int
    input_count: int
    outputs: int
    output_count: int
    pulse_frames: int
    max_output_frames: int
    deadline_ns: int
    gains: int
    records: int
    record_count: int
    record_bytes: int
    piece_frames: int
    scratch: int
    rate_in_hz: int
    rate_out_hz: int
    drift: int
    total_times: int
    waiting_times: int
    compute_times: int
    output_bytes: int
    pump: int
    run_pulse: int
    rate_hz: int
    block_frames: int
    block_ns: int
    planned_block_frames: int

    # The device
    input_side: Side
    output_side: Side

    # Capture
    frames_in: int = starts_line()
    frames_lost: int
    in_written: int
    arrivals_written: int

    # The worker
    in_read: int = starts_line()
    arrivals_read: int
    out_written: int
    filled_frames: int
    pulses: int
    pulses_dropped: int
    missed: int
    nonfinite: int
    status: int
    records_written: int
    records_lost: int
    instances: int
    next_instances: int
    priming: int
    compute_ns: int
    begun_ns: int
    pulse_dropped: int
    saved_state_pulses: int
    load_count: int
    state_pulse_offset: int
    initial_frames: int
    last_compute_ns: int
    expected_ns: int
    faults: int

    # The player
    out_read: int = starts_line()
    frames_out: int
    frames_silent: int
    frames_skipped: int
    anchor: int
    anchor_position: int
    frames_before_restart: int
    frames_cut: int
    longest_block_frames: int
    delay_growth_frames: int

    # Python
    command: int = starts_line()
    argument_memory: int
    argument_number: int
    stop: int
    records_read: int


class StreamInput(Struct):
    """One of the ``input_count`` input channels of a stream.

    channel    index of the device's channel
    slot       address of the first f32 of the [pulse_frames] that the model reads
    step       elements from one frame in the slot to the next
    resampler  address of a ``ResamplerState``; 0: the rates are equal
    """

    channel: int
    slot: int
    step: int
    resampler: int


class StreamOutput(Struct):
    """One of the ``output_count`` played channels of a stream, and the input channel that is mixed into it.

    resampler                   address of a ``ResamplerState``; 0: the rates are equal
    dry_slot, dry_step          address of the first f32 of the unprocessed input, and elements between its frames
    dry                         address of the f32 [pulse_frames] of this input, delayed
    dry_delay_line, dry_frames  address of f32 [dry_frames], which delays it as the model does its sound
    dry_index                   the next position in ``dry_delay_line``
    """

    resampler: int
    dry_slot: int
    dry_step: int
    dry: int
    dry_delay_line: int
    dry_frames: int
    dry_index: int


class Instance(Struct):
    """One stream's state in one program.

    packed              address of the ``MachineCall``
    slot_out            address of the packed outputs
    sounds              address of the first of ``output_count`` played channels
    delay_left_frames   the part of ``delay_frames`` that is still to come
    memory, memory_bytes  address of the state, and its bytes
    pulses_run          pulses that the state has run
    max_pulses          the most pulses that it may run
    delay_frames        the model's delay
    """

    packed: int = starts_line()
    slot_out: int
    sounds: int
    delay_left_frames: int
    memory: int
    memory_bytes: int
    pulses_run: int
    max_pulses: int
    delay_frames: int


class Sound(Struct):
    """A played channel of an instance.

    source              address of its first f32 in the packed outputs
    step                elements from one frame there to the next
    samples             address of f32 [pulse_frames]: what is played
    delay_line, delay_line_frames  address of f32 [delay_line_frames], which equalises the delays of programs
    delay_line_index    the next position in ``delay_line``
    """

    source: int
    step: int
    samples: int
    delay_line: int
    delay_line_frames: int
    delay_line_index: int


class ArrivalTime(Struct):
    """The number of frames that had been accepted at a time."""

    frames: int
    at_ns: int


class Gains(Struct):
    """The gains of the model's sound and of the input.

    model, bypass                the present ones
    next_model, next_bypass      those at the end of this pulse
    wanted_model, wanted_bypass  those that Python requests
    """

    model: float
    bypass: float
    next_model: float
    next_bypass: float
    wanted_model: float = starts_line()
    wanted_bypass: float


class RecordHeader(Struct):
    """The header of a record, followed by the outputs.

    pulse                 the number of the pulse
    arrived_ns, ready_ns  when its last frame arrived, and when its outputs were ready
    load_count            how often states had been loaded
    state_pulses          pulses of the states when loaded, and since then
    """

    pulse: int
    arrived_ns: int
    ready_ns: int
    load_count: int
    state_pulses: int


RECORD_HEADER_BYTES = align(bytes_of(RecordHeader))
control_at, inputs_at, outputs_at = struct_at(ControlBlock), struct_at(StreamInput), struct_at(StreamOutput)
instances_at, sounds_at, arrivals_at = struct_at(Instance), struct_at(Sound), struct_at(ArrivalTime)
gains_at, header_at = struct_at(Gains), struct_at(RecordHeader)

IN_CALLBACK, ON_WORKER = range(2)
WAIT, DROP_OLDEST, SILENCE_THEN_CATCH_UP, ABORT = range(4)
RUNNING, WAS_LATE, LIMIT_REACHED = range(3)
NONE, SAVE, LOAD, SWAP, RESTART, TAKEN = range(6)
