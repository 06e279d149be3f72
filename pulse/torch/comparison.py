"""Comparison of an exported model with its module, on arrays: this file needs no PyTorch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn, TypeAlias

import numpy as np

from pulse.errors import InputError, LoadError, PulseError
from pulse.facts import Array
from pulse.proof.oracle import Oracle
from pulse.proof.tolerance import PERTURBED_RUNS, ExpectedOutputs
from pulse.support.wording import count_of
from pulse.torch.advice import BAKED_ADVICE, describe_branches
from pulse.torch.difference import first_difference
from pulse.torch.inputs import LOUDER, SampledInputs, draw_inputs, lengths_of, make_louder
from pulse.torch.lengths import (
    Lengths,
    base_frames,
    even_length,
    format_lengths,
    multiples_by_name,
    variations,
)

CLOSE = 1e-4
"""The difference on louder inputs, as a part of an output's largest value, that does not show another choice."""

RunWhole: TypeAlias = Callable[[dict[str, Array]], dict[str, Array]]
"""A function of whole inputs to whole outputs; raises InputError for lengths that it does not take."""


class ModuleTrial(NamedTuple):
    """What comparing at other lengths than the example's showed.

    shorter, longer  whether a length was compared
    refusal          why the module refused the longer length that was tried first
    model_refusal    why the model refuses a shorter length that the module takes
    """

    shorter: bool
    longer: bool
    refusal: str
    model_refusal: str = ""

    @property
    def has_varied(self) -> bool:
        """Whether any length but the example's was compared."""
        return self.shorter or self.longer


@dataclass
class Comparison:
    """Both sides, and the examples of the inputs.

    title     the name of the module, for messages
    module    the reference
    model     the oracle that must equal it; any PulseError refuses the inputs
    samples   the example of each input of ``model``
    dynamic   the dynamic axes, for messages
    seed      the seed of the inputs that are drawn
    precise   the module in f64: the reference if the module's own sums, in an order that rounds more, are further
              off than rounding may move the model
    bind      raises InputError for inputs that are not as long as the model says that it needs
    branches  lines of the module's code whose conditions on lengths the example has decided, for messages
    """

    title: str
    module: RunWhole
    model: Oracle
    samples: Mapping[str, SampledInputs]
    dynamic: str
    seed: int = 0
    precise: RunWhole | None = None
    bind: Callable[[dict[str, Array]], object] = dict
    branches: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.lengths = lengths_of(self.samples)
        self._rng = np.random.default_rng(self.seed)
        self._compared: list[Lengths] = []

    def require_equal(
        self, lengths: Sequence[Lengths] | None = None, try_even_length: bool = False
    ) -> list[str]:
        """Compare at other lengths than the example's; without dynamic axes, or if none is given, on the example.

        lengths          the lengths; by default a shorter and a longer one of each symbol that the module takes
        try_even_length  whether to try a length, too, that powers of two divide, if ``lengths`` are the default
        Returns          what was not compared
        Raises           LoadError: they differ, or the module differs from itself; InputError: the module does not take
                         one of ``lengths``, or by default no other than the example's
        """
        notes: list[str] = []
        if lengths is None and self.lengths:
            for sizes in (
                length
                for name in multiples_by_name(self.lengths)
                if try_even_length
                for length in even_length(self.lengths, name)
            ):
                self._try_shorter([sizes])
            notes = self._vary()
        else:
            self._require_all(lengths or [self.lengths])
        self._compare_louder()
        return notes

    def _require_all(self, lengths: Sequence[Lengths]) -> None:
        """Compare at all of these lengths. Raises InputError: the module does not take one of them."""
        for sizes in lengths:
            refusal = self._refusal(sizes)
            if refusal is not None:
                raise InputError(
                    f"{self.title}: the module does not run on {format_lengths(sizes) or 'the example'}: {refusal}; "
                    f"give {'lengths' if sizes else 'an example'} that it takes"
                )

    def _compare_louder(self) -> None:
        """Compare on louder inputs: a choice by values may be one that the example's values do not reach.

        Nothing is shown if one of the two refuses such inputs, or if the module overflows.
        """
        if not self._compared:
            return
        lengths = min(self._compared, key=lambda sizes: sum(sizes.values()))
        feeds = make_louder(self.samples, draw_inputs(self.samples, lengths, self._rng))
        try:
            expected = self.module(feeds)
        except InputError:
            return
        outputs = self._run_model(feeds)
        if isinstance(outputs, PulseError) or not all(
            np.isfinite(value).all() for value in expected.values()
        ):
            return
        if not (_are_close(expected, outputs) or self._agree(feeds, expected, outputs)):
            raise LoadError(
                f"{self.title}: the exported model equals the module on values of the example, but on floats that are "
                f"{LOUDER:g} times as large it differs: {_difference(expected, outputs, {})}; so the export depends on "
                "the values of the example; compute both sides of a condition on values, and select one with "
                "torch.where; compare=False returns the model as the exporter wrote it"
            )

    def _vary(self) -> list[str]:
        """Vary each symbol alone; those that cannot change alone, in proportion with all others."""
        tried = {name: self._try(symbols) for name, symbols in multiples_by_name(self.lengths).items()}
        if len(tried) > 1 and not all(outcome.has_varied for outcome in tried.values()):
            together = self._try(list(self.lengths))
            tried = {symbol: outcome if outcome.has_varied else together for symbol, outcome in tried.items()}
        notes: list[str] = []
        for symbol, trial in tried.items():
            frames = base_frames(self.lengths, symbol)
            if not trial.has_varied:
                raise InputError(
                    f"{self.title}: {symbol} may have any length, but besides the example's "
                    f"{count_of(frames, 'frame')} the "
                    f"module takes none that was tried; at {trial.refusal}; give lengths that it takes, as in "
                    f'lengths=[{{"{symbol}": {2 * frames}}}], or leave {symbol} out of dynamic'
                )
            if not trial.longer:
                notes.append(
                    f"the module takes no length that is longer than the example's ({symbol} = {frames}) of those that "
                    f"were tried, so none was compared; at {trial.refusal}; lengths=[…] says which ones it takes"
                )
            if trial.model_refusal:
                notes.append(
                    f"the module takes shorter inputs than the model, which refuses them: {trial.model_refusal}; "
                    "PyTorch's exporter keeps that side of a condition on the length which the example takes"
                )
        return notes

    def _try(self, symbols: Sequence[str]) -> ModuleTrial:
        """Compare at the first shorter and the first longer length that the module takes."""
        shorter, longer = variations(self.lengths, symbols)
        has_shorter, model_refusal = self._try_shorter(shorter)
        refusal = ""
        for lengths in longer:
            reason = self._refusal(lengths)
            if reason is None:
                return ModuleTrial(has_shorter, True, "", model_refusal)
            refusal = refusal or f"{format_lengths(lengths)}: {reason}"
        return ModuleTrial(has_shorter, False, refusal, model_refusal)

    def _try_shorter(self, shorter: Sequence[Lengths]) -> tuple[bool, str]:
        """Return whether one was compared, and why the model refuses others: a refusal is not an error."""
        model_refusal = ""
        for lengths in shorter:
            feeds = draw_inputs(self.samples, lengths, self._rng)
            try:
                self.bind(feeds)
            except InputError as error:
                if not model_refusal and self._takes(feeds):
                    model_refusal = str(error)
                continue
            if self._refusal(lengths) is None:
                return True, model_refusal
        return False, model_refusal

    def _takes(self, feeds: dict[str, Array]) -> bool:
        """Return whether the module runs on these inputs."""
        try:
            self.module(feeds)
        except InputError:
            return False
        return True

    def _refusal(self, lengths: Lengths) -> str | None:
        """Return why the module does not take these lengths; None if it does, and the model equals it."""
        feeds = draw_inputs(self.samples, lengths, self._rng)
        try:
            expected = self.module(feeds)
        except InputError as error:
            return str(error)
        outputs = self._run_model(feeds)
        if not self._agree(feeds, expected, outputs):
            self._explain(lengths, expected, outputs)
        self._compared.append(lengths)
        return None

    def _agree(
        self, feeds: dict[str, Array], expected: dict[str, Array], outputs: "ExpectedOutputs | PulseError"
    ) -> bool:
        """Return whether the module agrees with the model, in its own dtypes or in f64, the slowest check last."""
        if isinstance(outputs, PulseError):
            return False
        references = [expected]
        for runs in (0, PERTURBED_RUNS):
            if any(first_difference(reference, outputs, {}, runs) is None for reference in references):
                return True
            if len(references) == 1 and self.precise is not None:
                try:
                    references = [self.precise(feeds), expected]
                except InputError:
                    # the module does not run in f64: it is compared in its own dtypes only
                    self.precise = None
                    continue
                if first_difference(references[0], outputs, {}, runs) is None:
                    return True
        return False

    def _run_model(self, feeds: dict[str, Array]) -> "ExpectedOutputs | PulseError":
        try:
            with np.errstate(all="ignore"):
                return ExpectedOutputs(self.model, feeds)
        except PulseError as error:
            return error

    def _explain(
        self, lengths: Lengths, expected: dict[str, Array], outputs: "ExpectedOutputs | PulseError"
    ) -> NoReturn:
        """Raise the error of a difference: run the example to see whether the length is the cause."""
        feeds = draw_inputs(self.samples, self.lengths, self._rng)
        try:
            example, again = self.module(feeds), self.module(feeds)
        except InputError as error:
            raise LoadError(
                f"{self.title}: the exported model differs from the module at {format_lengths(lengths)}, and on the "
                f"example the module does not run: {error}; give an example that it takes"
            ) from error
        for name, value in example.items():
            if not np.array_equal(again[name], value, equal_nan=value.dtype.kind in "fc"):
                raise LoadError(
                    f"{self.title}: output {name} differs between two runs on the same input, so no model can equal "
                    "it: the module draws random numbers, or keeps something between runs that is neither buffer nor "
                    "attribute; make noise an input, states inputs and outputs, and dropout a layer (nn.Dropout)"
                )
        example_outputs = self._run_model(feeds)
        if not self._agree(feeds, example, example_outputs):
            cause = _difference(example, example_outputs, {})
            raise LoadError(
                f"{self.title}: the exported model differs from the module on the example itself, so lengths are not "
                f"the cause: {cause}; compare=False returns the model as the exporter wrote it"
            )
        raise LoadError(
            f"{self.title}: the exported model equals the module at the example's length "
            f"({format_lengths(self.lengths)}), but at {format_lengths(lengths)} it differs: "
            f"{_difference(expected, outputs, example)}; so PyTorch's exporter has baked a length in, "
            f"though it was given as dynamic: {self.dynamic}; "
            f"{'; '.join(filter(None, (describe_branches(self.branches), BAKED_ADVICE)))}"
        )


def _are_close(expected: dict[str, Array], outputs: ExpectedOutputs) -> bool:
    """Return whether all floats differ by little of the largest one of their output, and all else is equal."""
    return len(expected) == len(outputs.native) and all(
        value.shape == native.shape
        and (
            np.abs(value - native).max(initial=0) <= CLOSE * np.abs(value).max(initial=0)
            if value.dtype.kind == "f"
            else np.array_equal(value, native)
        )
        for value, native in zip(expected.values(), outputs.native.values())
    )


def _difference(
    expected: dict[str, Array], outputs: "ExpectedOutputs | PulseError", example: dict[str, Array]
) -> str | None:
    if isinstance(outputs, PulseError):
        return f"the model refuses what the module takes: {outputs}"
    return first_difference(expected, outputs, example)
