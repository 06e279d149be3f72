"""The check that NNEF in tract equals the offline model."""

from collections.abc import Sequence

import numpy as np

from pulse.errors import InputError, NotProvedError
from pulse.facts import Array
from pulse.nnef.archive import Archive
from pulse.proof import ProofChoice, ProofReport, prove_programs
from pulse.proof.oracle import pulsed_oracle, typed_oracle
from pulse.proof.tolerance import ExpectedOutputs
from pulse.pulsify.network import PulsedNetwork
from pulse.runtimes.tract import TractProcess, TractProgram
from pulse.support.record import record
from pulse.typed import TypedNetwork

TRIED_LENGTHS = (1, 2, 3, 5, 8, 16, 31, 64, 257)
"""The lengths that are tried if none are given, in frames."""


def check_nnef(
    archive: Archive,
    model: PulsedNetwork,
    typed: TypedNetwork | None = None,
    choice: ProofChoice = ProofChoice(),
) -> ProofReport:
    """Run streams through what ``to_nnef`` made of a pulsed model, as ``pulse.proof.prove`` does.

    typed   the offline model; see ``pulsed_oracle``
    choice  which streams
    Raises  WriteError: tract refuses the file. PulsifyError: no length can be run
    """
    return prove_programs(model, pulsed_oracle(model, typed), [TractProgram(model, archive)], choice)


@record
class OfflineProof:
    """The result of runs over whole inputs.

    lengths     values of every symbol that were tried
    divergence  the first difference, as text; None: there is none
    """

    lengths: tuple[int, ...]
    divergence: str | None


def check_offline(
    archive: Archive, typed: TypedNetwork, lengths: Sequence[int] | None = None, seed: int = 0
) -> OfflineProof:
    """Run whole inputs of several lengths through what ``to_nnef`` made of an offline model.

    Raises  WriteError: tract refuses the file. NotProvedError: no length can be run
    """
    process = TractProcess(archive, typed.title)
    lengths_run: list[int] = []
    for length in lengths or TRIED_LENGTHS:
        feeds = _feeds(typed, length, seed)
        try:
            expected = ExpectedOutputs(typed_oracle(typed), feeds)
        except InputError:
            continue
        lengths_run.append(length)
        names = [typed.graph.label(outlet) for outlet in typed.graph.inputs]
        results = process.run(str(length), [feeds[name] for name in names])
        for (name, fact), result in zip(typed.outputs.items(), results):
            axis = next((axis for axis, dim in enumerate(fact.shape) if dim.symbols), None)
            judgement = expected.judge(name, result, axis)
            if not judgement.agrees:
                return OfflineProof(
                    tuple(lengths_run), f"{name} differs by {judgement.difference:g} at length {length}"
                )
    if not lengths_run:
        raise NotProvedError(f"{typed.title}: it takes none of the lengths that were tried; give others")
    return OfflineProof(tuple(lengths_run), None)


def _feeds(typed: TypedNetwork, length: int, seed: int) -> dict[str, Array]:
    """Return random inputs, with all symbols equal."""
    rng = np.random.default_rng([seed, length])
    feeds: dict[str, Array] = {}
    for outlet in typed.graph.inputs:
        fact = typed.graph.fact(outlet)
        sizes = [dim.eval(dict.fromkeys(dim.symbols, length)) for dim in fact.shape]
        normal = rng.standard_normal(sizes)
        values = normal if fact.dtype.kind == "f" else rng.integers(0, 2, sizes)
        feeds[typed.graph.label(outlet)] = np.asarray(values).astype(fact.dtype)
    return feeds
