"""Specialised kernels: machine code for one row of a program, with the fields of the row as constants.

The code is compared with the generic kernels: on the same memory it must leave the same bytes, and it must be faster.
Then its addresses are written to the table, word by word, while streams run. Each call of a row runs either code, and
both do the same.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pulse.errors import InputError
from pulse.jit.specialised_functions import specialised_functions
from pulse.program.native.native_executable import NativeExecutable
from pulse.program.specialise.kernel_rows import KernelRows, rows_by_kernel, write_addresses
from pulse.program.specialise.outcome import Specialisation
from pulse.program.specialise.trial import SpecialisationTrial
from pulse.program.table.table import RowTable, link
from pulse.support.wording import spell

MIN_GAIN = 1.1
"""The default minimum speed-up of a step for which specialised kernels are worth their memory."""
MIN_KERNEL_GAIN = 1.02
"""The minimum speed-up of the rows of a kernel for which they are specialised."""
MIN_SHARE = 0.01
"""The minimum share of the time of a step for which the rows of a kernel are specialised."""


def specialise(
    program: NativeExecutable, seconds: float, megabytes: float, min_gain: float | None = None
) -> Specialisation:
    """Specialise the kernels that take most of a step, for all streams of the program.

    seconds    processor time after which no further rows are compiled
    megabytes  machine code after which no further rows are compiled
    min_gain   the minimum speed-up of a step for which streams run them; None: ``MIN_GAIN``
    Raises     InputError: ``min_gain`` is below 1; CompileError: their code cannot be compiled
    """
    if min_gain is not None and not min_gain >= 1:
        raise InputError(
            f"{spell('min_gain', min_gain)}: the minimum speed-up of a step is a number from 1, such as 1.05"
        )
    required_gain = MIN_GAIN if min_gain is None else min_gain
    begin_s = time.thread_time()
    trial, generic = SpecialisationTrial(program), link(program.unlinked)
    hot = _find_hot_rows(program, trial, generic)
    specialised, nbytes = generic.copy(), 0
    batches = ((rows.kernel, rows.applied_rows, batch) for rows in hot for batch in rows.batches())
    for kernel, applied, batch in batches:
        if time.thread_time() - begin_s > seconds or nbytes > megabytes * 1e6:
            break
        functions = specialised_functions(kernel, list(batch), compiles=True, applied=applied)
        assert functions is not None
        nbytes += functions.nbytes
        write_addresses(specialised, batch, functions)
    _restore_slow_rows(trial, generic, specialised, hot)
    changed = np.flatnonzero(specialised != generic)
    before_s, after_s = trial.step_seconds([generic, specialised])
    if not changed.size:
        after_s = before_s
    reason = ""
    if not trial.agree(generic, specialised):
        reason = "they do not compute the same bits"
    elif before_s < required_gain * after_s:
        reason = (
            f"a step is {before_s / after_s:.2f} times as fast; less than {required_gain} is not worth it"
        )
    used = tuple(
        rows.kernel.name
        for rows in hot
        if any(start in changed for starts in rows.starts.values() for start in starts)
    )
    if not reason:
        program.specialised_kernels = used
        for start in changed:
            program.table[start] = specialised[start]
    took_s = time.thread_time() - begin_s
    return Specialisation(
        reason=reason,
        kernels=used,
        rows=len(changed),
        total=program.row_count,
        before_s=before_s,
        after_s=after_s,
        seconds=took_s,
        nbytes=nbytes,
    )


def _find_hot_rows(
    program: NativeExecutable, trial: SpecialisationTrial, generic: RowTable
) -> list[KernelRows]:
    """Return the rows of kernels that take at least ``MIN_SHARE`` of a step, the slowest kernel first."""
    (ticks,) = trial.row_ticks([generic])
    timed = [
        replace(rows, share=float(ticks[rows.numbers].sum() / ticks.sum()))
        for rows in rows_by_kernel(program.unlinked)
    ]
    return sorted((rows for rows in timed if rows.share >= MIN_SHARE), key=lambda rows: -rows.share)


def _restore_slow_rows(
    trial: SpecialisationTrial, generic: RowTable, specialised: RowTable, hot: Sequence[KernelRows]
) -> None:
    """Restore the generic rows of kernels that gain nothing."""
    generic_ticks, specialised_ticks = trial.row_ticks([generic, specialised])
    for rows in hot:
        if generic_ticks[rows.numbers].sum() < MIN_KERNEL_GAIN * specialised_ticks[rows.numbers].sum():
            for starts in rows.starts.values():
                specialised[starts] = generic[starts]
