"""Merges errors that occur while another error is raised."""

from collections.abc import Sequence

import anyio

from streaming.errors import unwrap_single_error


def merge_errors(error: BaseException | None, others: Sequence[BaseException]) -> BaseException | None:
    """Return one error to raise in place of several.

    error   the error being raised; None if there is none
    others  the other errors: they replace a cancellation or None, and are notes on any other error
    """
    if not others:
        return error
    if error is None or isinstance(error, anyio.get_cancelled_exc_class()):
        return unwrap_single_error(
            BaseExceptionGroup("errors of sources, raised after the last output was taken", others)
        )
    for other in others:
        error.add_note(f"besides: {type(other).__name__}: {other}")
    return error
