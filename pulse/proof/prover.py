"""The proof itself: streams of several lengths and signals, each compared with the offline model."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pulse.errors import InputError, PulsifyError
from pulse.facts import Array
from pulse.program.backends.registry import Prepare
from pulse.program.compiler import compile_model
from pulse.program.program import Program
from pulse.program.whole_stream import stream_whole
from pulse.proof.effort import Effort
from pulse.proof.locating import first_divergence, wrong_wires
from pulse.proof.oracle import Feeds, Oracle
from pulse.proof.original import Original, compare_with_original
from pulse.proof.report import (
    Coverage,
    Divergence,
    LargestError,
    OriginalRecord,
    ProofReport,
    TrialRecord,
)
from pulse.proof.tolerance import ExpectedOutputs
from pulse.proof.trial_signals import draw_feeds, find_domain, integer_ranges
from pulse.proof.trials import MAX_LONG_S, ProofChoice, Trial, plan_trials
from pulse.pulsify.network import PulsedNetwork
from pulse.support.wording import spell


def prove(
    model: PulsedNetwork,
    oracle: Oracle,
    choice: ProofChoice = ProofChoice(),
    backend: str = "numba",
    prepare: Prepare | None = None,
    original: Original | None = None,
) -> ProofReport:
    """Run streams of a pulsed model, the padding of the last pulse NaN, and compare every frame with the oracle.

    oracle    the expected outputs of whole inputs
    choice    which streams
    backend   the backend to prove, besides the numpy reference
    prepare   see ``compile_model``
    original  what the model was exported from, with which the stream is compared too
    Raises    CompileError: a backend cannot run the model; PulsifyError: no length can be run
    """
    names = tuple(dict.fromkeys(("numpy", backend)))
    programs = [compile_model(model, name, prepare=prepare) for name in names]
    return prove_programs(model, oracle, programs, choice, original)


def prove_programs(
    model: PulsedNetwork,
    oracle: Oracle,
    programs: Sequence[Program],
    choice: ProofChoice = ProofChoice(),
    original: Original | None = None,
) -> ProofReport:
    """Prove the last of the given programs of a model; see ``prove``."""
    trials, effort = plan_trials(model, choice), Effort(model)
    ranges = integer_ranges(model, oracle, max(1, min(trial.length for trial in trials.trials)))
    noise_length = next((trial.length for trial in trials.trials if trial.traced), trials.longest)
    domain = find_domain(model, oracle, noise_length, ranges)
    observed = _CoverageCounter(model)
    records: list[TrialRecord] = []
    skipped: dict[int, str] = {}
    worst = LargestError()
    divergence: Divergence | None = None
    for index, trial in enumerate(trials.trials):
        feeds = draw_feeds(model, trial.length, trial.signal, (choice.seed, index), ranges, domain)
        try:
            expected = ExpectedOutputs(oracle, feeds, choice.seed)
        except InputError as error:
            skipped.setdefault(trial.length, str(error))
            continue
        trial_programs = [
            p
            for p in programs
            if p is programs[-1] or choice.lengths is not None or _ends_in_time(p, trial, effort)
        ]
        records.append(
            TrialRecord(trial.length, trial.signal, tuple(program.backend for program in trial_programs))
        )
        observed.add(trial, expected.native)
        for program in trial_programs:
            errors, divergence = _judge(program, feeds, expected, trial)
            worst = worst.join(errors)
            if divergence is not None:
                break
        if divergence is None and trial.traced:
            divergence = next(wrong_wires(trial_programs, feeds, trial), None)
        if divergence is not None:
            break
    if not records:
        longest = max(skipped)
        raise PulsifyError(
            f"the offline model runs at none of the lengths {sorted(skipped)}; at {longest}: {skipped[longest]}; "
            f"give lengths that it takes with {spell('lengths')}"
        )
    original_record: OriginalRecord | None = None
    if divergence is None and original is not None:
        lengths_run = [trial.length for trial in records]
        result = compare_with_original(original, model, oracle, programs[-1], lengths_run, choice.seed)
        original_record, divergence = (result, None) if isinstance(result, OriginalRecord) else (None, result)
    return ProofReport(
        model=model,
        backends=tuple(program.backend for program in programs),
        tried=tuple(records),
        skipped=tuple(skipped),
        outputs=observed.coverage(),
        trials=trials,
        seed=choice.seed,
        worst=worst,
        divergence=divergence,
        original=original_record,
        domain=domain,
    )


def _ends_in_time(program: Program, trial: Trial, effort: Effort) -> bool:
    """Return whether a reference program may run a stream: it must not take too long."""
    return not trial.long or program.steps(trial.length) * effort.seconds(program.pulse) <= MAX_LONG_S


def _judge(
    program: Program, feeds: Feeds, expected: ExpectedOutputs, trial: Trial
) -> tuple[LargestError, Divergence | None]:
    """Return the largest errors of one stream's outputs, and where it differs."""
    errors = _largest_errors(program, feeds, expected)
    if isinstance(errors, str):
        return LargestError(), Divergence(
            wire="the stream",
            op="input",
            length=trial.length,
            signal=trial.signal,
            backend=program.backend,
            reason=errors,
        )
    if errors.share > 1:
        return errors, first_divergence(program, feeds, expected, trial)
    return errors, None


def _largest_errors(program: Program, feeds: Feeds, expected: ExpectedOutputs) -> LargestError | str:
    """Return the largest differences of all outputs, or the reason why nothing can be compared."""
    try:
        results = stream_whole(program, feeds)
    except InputError as error:
        return f"the offline model takes these inputs, the stream does not: {error}"
    worst = LargestError()
    for name in expected.native:
        judgement = expected.judge(name, results[name], program.model.port(name).axis)
        worst = worst.join(LargestError(judgement.difference, judgement.relative, judgement.share))
    return worst


class _CoverageCounter:
    """The coverage of the outputs by the streams so far."""

    def __init__(self, model: PulsedNetwork) -> None:
        self._model = model
        reading = outputs_that_read(model)
        self._covered = {port.name: Coverage(port.name, reads=port.name in reading) for port in model.outputs}
        self._first: dict[tuple[str, int], Array] = {}

    def add(self, trial: Trial, outputs: dict[str, Array]) -> None:
        """Add the offline outputs of a stream."""
        for name, values in outputs.items():
            port = self._model.port(name)
            frames = 1 if port.axis is None else values.shape[port.axis]
            covered = self._covered[name].add(values, frames)
            first = self._first.setdefault((name, trial.length), values)
            has_moved = covered.moved or not np.array_equal(first, values, equal_nan=values.dtype.kind == "f")
            has_repeated = covered.repeated or first is not values
            self._covered[name] = replace(covered, moved=has_moved, repeated=has_repeated)

    def coverage(self) -> tuple[Coverage, ...]:
        """Return the coverage of each output."""
        return tuple(self._covered.values())


def outputs_that_read(model: PulsedNetwork) -> set[str]:
    """Return the outputs that are computed from an input or a state."""
    graph = model.graph
    reached = {*graph.inputs, *(register.read for register in model.registers)}
    for node_id in graph.order(model.targets):
        if not reached.isdisjoint(graph.nodes[node_id].inputs):
            reached.update(graph.nodes[node_id].wires)
    return {name for name, outlet in zip(graph.output_names, graph.outputs) if outlet in reached}
