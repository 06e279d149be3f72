"""The fields of the control blocks of a pipeline, of its streams and of its instances.

Each group of fields has one writer, and begins on a cache line of its own.
"""

# Settings: written by Python before anything runs.
(
    VIRTUAL_CLOCK,  # 1: the time is VIRTUAL_NOW_NS, which a test sets
    VIRTUAL_NOW_NS,
    ENGINE,  # IN_CALLBACK or ON_WORKER
    POLICY,
    WAKE,  # descriptor that wakes the worker, to write; -1: none
    WAIT,  # the same, to read
    IN_CHANNELS,
    IN_RING,  # address of float32 [IN_FRAMES, IN_CHANNELS]
    IN_FRAMES,  # a power of two
    OUT_CHANNELS,  # 0: nothing is played
    OUT_RING,
    OUT_FRAMES,
    PLAYED,  # address of float32 [OUT_FRAMES, OUT_CHANNELS]: what was played, silence included
    MARKS,  # address of pairs: frames accepted so far, and when
    MARK_COUNT,  # a power of two
    STREAMS,
    STREAM,  # address of the control block of the first stream
    PULSE,  # frames of the model
    LARGEST_OUTPUT,  # the most frames that a pulse adds to the ring of output
    DEADLINE_NS,
    GAINS,  # address of float32 for model and bypass: now, what Python wants, and of that what this pulse goes to
    RECORDS,  # address of the ring of records
    RECORD_COUNT,  # a power of two
    RECORD_BYTES,
    LARGEST,  # device frames that are taken at a time
    SCRATCH,  # address of float32 [LARGEST]
    IN_RATE,  # Hz
    OUT_RATE,
    DRIFT,  # address of the float64 of ``drift``; 0: one clock
    TOTAL_TIMES,  # histograms
    WAITING_TIMES,
    COMPUTE_TIMES,
    OUTPUT_BYTES,  # of one stream's outputs in a record
    PUMP,  # addresses of C functions: run all pulses that are there, run the one in the slots
    RUN_PULSE,
    RATE,  # of the model, Hz
    BLOCK,  # frames that are played at once, if all blocks are alike
    BLOCK_NS,
    SPARE,  # frames of a block for which the delay suffices, where blocks are not known before; -1: they are
    INPUTS,  # sounds that each stream takes
) = range(40)

# Each side of the device: the one that brings input, also where it takes output; and one that only takes output.
(
    CALLBACKS,
    LAST_NS,
    LONGEST_GAP_NS,
    INPUT_UNDERFLOWS,
    INPUT_OVERFLOWS,
    OUTPUT_UNDERFLOWS,
    OUTPUT_OVERFLOWS,
    CALLBACK_TIMES,  # histograms; written by Python
    INTERVAL_TIMES,
    INPUT_AGE_S,  # float64: how long before the last call its first sample was heard; 0 where the device states nothing
    PLAYED_IN_S,  # the same until the first sample that it took is played
    BLOCK_POSITION,  # of the first frame of the last block, in the ring of input or of output
    BLOCK_TIME_NS,  # when that block came; 0: there was none, or PLACE is just being written
) = (*range(11), 12, 13)
SIDES = 40
SIDE_FIELDS = 16

# Capture.
FRAMES_IN, FRAMES_LOST, IN_WRITTEN, MARKS_WRITTEN = range(72, 76)

# Worker.
(
    IN_READ,
    MARKS_READ,
    OUT_WRITTEN,
    FILLED,
    PULSES,
    PULSES_DROPPED,
    MISSED,
    NONFINITE,
    STATUS,
    RECORDS_WRITTEN,
    RECORDS_LOST,
    INSTANCES,  # address of the control block of the first instance
    NEXT_INSTANCES,  # 0: there are none
    PRIMING,  # pulses that the next instances run along before they are heard
    COMPUTE_NS,
    BEGUN_NS,  # when computing the pulse in the slots began
    LEFT_OUT,  # 1: it is not computed
    SAVED,  # pulses that the states had had when they were saved
    LOADS,  # how often states were loaded
    LOADED,  # pulses that those had had, less PULSES at that time
    INITIAL_FRAMES,  # frames of silence that were written to the ring of output: they are the delay
    LAST_COMPUTE_NS,
    EXPECTED_NS,  # what a pulse is expected to take: the shorter of the last two; half of it after one was left out
    FAULTS,  # values for which a node of the model that is heard had no result
) = range(80, 104)

# Player; nothing is counted, and all is silence, until more than ANCHOR frames have come in, which go to the ring of
# input from ANCHOR_PLACE on. FORGIVEN is the part of the underrun compensation that is not skipped; CUT frames were
# left out for output to be as late as agreed. The worker writes here when it restarts: no device is open then.
(
    OUT_READ,
    FRAMES_OUT,
    FRAMES_SILENT,
    FRAMES_SKIPPED,
    LATE,
    ANCHOR,
    ANCHOR_PLACE,
    FORGIVEN,
    CUT,
    LONGEST_BLOCK,  # frames
    GROWN,  # frames of silence that were agreed on while it runs, see SPARE
) = range(104, 115)

# Python: a command and its arguments; whoever applies it sets it to TAKEN, and to NONE when it is done.
COMMAND, FIRST, SECOND, STOP, RECORDS_READ = range(120, 125)

PIPELINE_FIELDS = 128

# An input of a stream, INPUTS of them for each stream; from OUT_RESAMPLER on only the first of a stream counts.
CHANNEL, SLOT_IN, IN_RESAMPLER, OUT_RESAMPLER, DRY, DRY_DELAY_LINE, DRY_FRAMES, DRY_PLACE = range(8)
STREAM_FIELDS = 8

# An instance: one stream's state in one program.
(
    PACKED,
    SLOT_OUT,
    SOUND,  # byte of the sound in the outputs
    SOUND_OUT,  # address of float32 [PULSE]: what of it is played
    DELAY_LEFT,  # frames of the model's delay that are still to come
    DELAY_LINE,  # address of float32 [DELAY_LINE_FRAMES]: what makes delays of programs equal
    DELAY_LINE_FRAMES,
    DELAY_LINE_PLACE,
    MEMORY,
    MEMORY_BYTES,
    RAN,  # pulses that the state has had
    LIMIT,  # how many it may have
    DELAY,  # frames of the model's delay
) = range(13)
INSTANCE_FIELDS = 16

IN_CALLBACK, ON_WORKER = range(2)
WAITS, DROPS, CATCHES_UP, ABORTS = range(4)
RUNNING, WAS_LATE, LIMIT_REACHED = range(3)
NONE, SAVE, LOAD, SWAP, RESTART, TAKEN = range(6)
RECORD_HEADER = 64
"""Bytes in front of the outputs of a record: PULSES, arrival and readiness in ns, LOADS, LOADED + PULSES."""
