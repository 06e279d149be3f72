"""Guess the stages before and after a model from the sizes of its inputs and outputs."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from pulse.facts import TypedFact
from pulse.support.record import record
from pulse.support.wording import count_of, spell

RATE_OF_BINS = {
    129: 16_000,
    161: 16_000,
    201: 16_000,
    257: 16_000,
    321: 16_000,
    481: 48_000,
    513: 48_000,
    769: 48_000,
    1025: 48_000,
}
"""The number of frequencies of common transforms -> the sample rate that goes with it."""
USUAL_BANDS = (20, 23, 24, 32, 40, 60, 64, 80, 96, 100, 128)
"""Numbers of bands of common filter banks."""
MICRO_BANDS = 40
"""The bands of TensorFlow Lite Micro's front end, whose outputs are codes."""
STACK_STEPS = {7: 6}
"""The number of stacked frames -> the step from one stack to the next, if not 1."""
USUAL_BLOCKS = (256, 320, 480, 512, 960, 1024, 2048)
"""Numbers of samples of common frames."""
CHANNELS_INPUT = "x"
"""The name of the input of a recipe for audio of several channels."""
RATE_HZ = 16_000
"""The rate of a proposal for a model whose sizes do not tell it; the notes say that it is assumed."""


@record
class Guess:
    """The stages around a model.

    front, back    lines of TOML
    model_lines    more lines of the stage of the model
    rate_hz        sample rate in hertz
    notes          guesses, and values to fill in
    kind           the input of the model: ``spectra`` (complex), ``magnitudes``, ``features``, ``frames`` or ``sound``
    samples        samples in a frame, for spectra, magnitudes and frames
    input_layout   layout of the spectrum before the model
    output_layout  layout of the spectrum after it
    """

    front: Sequence[str] = ()
    back: Sequence[str] = ()
    model_lines: Sequence[str] = ()
    rate_hz: int = RATE_HZ
    notes: Sequence[str] = ()
    kind: str = "sound"
    samples: int = 0
    input_layout: str = ""
    output_layout: str = ""


@record
class _Axes:
    """The axes of a tensor of one stream: the constant sizes, and the position of time after the first axis.

    sizes  the constant sizes after the first axis
    time   the position of time among them
    coded  whether its values are integers
    """

    sizes: tuple[int, ...]
    time: int
    coded: bool

    @classmethod
    def of(cls, fact: TypedFact) -> "_Axes | None":
        """Return the axes; None if there is not one time axis, or more than one stream."""
        moving = [axis for axis, dim in enumerate(fact.shape) if dim.symbols]
        if len(moving) != 1 or moving[0] == 0 or fact.shape[0] != 1:
            return None
        sizes = tuple(int(dim) for dim in fact.shape[1:] if not dim.symbols)
        return cls(sizes, moving[0] - 1, np.issubdtype(fact.dtype, np.integer))

    def layout(self, letters: Sequence[str]) -> str:
        """Return the layout, such as F,T,2: a letter for each size, and T."""
        return ",".join([*letters[: self.time], "T", *letters[self.time :]])


def guess_recipe(
    input_fact: TypedFact, output_fact: TypedFact, hop: int | None, channels: int | None = None
) -> Guess | None:
    """Return the stages around a model of this input and output; None if nothing usual fits.

    hop       samples from one frame to the next, if known
    channels  the channels of audio, on the axis after the batch; None if there is no such axis
    """
    if channels is not None:
        return _guess_channels(input_fact, output_fact, hop, channels)
    input_axes, output_axes = _Axes.of(input_fact), _Axes.of(output_fact)
    if input_axes is None:
        return None
    for attempt in _ATTEMPTS:
        guess = attempt(input_axes, output_axes, hop)
        if guess is not None:
            return guess
    return None


def _guess_channels(
    input_fact: TypedFact, output_fact: TypedFact, hop: int | None, channels: int
) -> Guess | None:
    """Guess the stages for each channel: the batch of the front end, and the second axis of the model."""
    inner_input, inner_output = (_without_channels(fact, channels) for fact in (input_fact, output_fact))
    guess = None if inner_input is None else guess_recipe(inner_input, inner_output or output_fact, hop)
    if guess is None or not guess.front:
        return None
    first, *others = guess.front
    squeeze = "\n".join(["squeeze = { axis = 0 }", *guess.model_lines])
    return replace(
        guess,
        front=[f'{first}\nfrom = ["{CHANNELS_INPUT}"]', *others, "unsqueeze = { axis = 0 }"],
        back=[squeeze, *guess.back] if guess.back else [],
        model_lines=(),
    )


def _without_channels(fact: TypedFact, channels: int) -> TypedFact | None:
    """Return [1, ...] for [1, channels, ...]; None for other shapes."""
    if fact.rank < 2 or fact.shape[1] != channels:
        return None
    return replace(fact, shape=(fact.shape[0], *fact.shape[2:]))


def _guess_complex(input_axes: _Axes, output_axes: _Axes | None, hop: int | None) -> Guess | None:
    """Guess an STFT before a model of complex spectra: 257 frequencies and 2 parts, in any order, or in one axis."""
    if len(input_axes.sizes) == 2 and 2 in input_axes.sizes:
        bins = next((size for size in input_axes.sizes if size != 2), 2)
        layout = input_axes.layout(["2" if size == 2 else "F" for size in input_axes.sizes])
    elif len(input_axes.sizes) == 1 and input_axes.sizes[0] % 2 == 0:
        bins = input_axes.sizes[0] // 2
        layout = input_axes.layout(["2F"])
    else:
        return None
    if bins not in RATE_OF_BINS:
        return None
    transform = f'n_fft = {2 * (bins - 1)}, hop = {hop or bins - 1}, window = "sqrt_hann"'
    back: list[str] = []
    output_layout = ""
    if output_axes is not None and sorted(output_axes.sizes) == sorted(input_axes.sizes):
        output_layout = output_axes.layout(
            ["2F"] if len(output_axes.sizes) == 1 else ["2" if s == 2 else "F" for s in output_axes.sizes]
        )
        back = [f'istft = {{ {transform}, length = "T"{_layout(output_layout)} }}']
    notes = _transform_notes(bins, back, hop)
    if layout.startswith("2,"):
        notes.insert(
            0,
            "the axis of 2 is assumed to be real and imaginary parts; if it is two channels of magnitudes, give "
            f"{spell('channels', 2)}",
        )
    front = [f"stft = {{ {transform}{_layout(layout)} }}"]
    return Guess(
        front=front,
        back=back,
        model_lines=(),
        rate_hz=RATE_OF_BINS[bins],
        notes=notes,
        kind="spectra",
        samples=2 * (bins - 1),
        input_layout=layout,
        output_layout=output_layout,
    )


def _guess_magnitudes(input_axes: _Axes, output_axes: _Axes | None, hop: int | None) -> Guess | None:
    """Guess magnitudes before a model of 257 frequencies, and a mask after it if the output has as many."""
    if len(input_axes.sizes) != 1 or input_axes.sizes[0] not in RATE_OF_BINS:
        return None
    (bins,) = input_axes.sizes
    transform = f'n_fft = {2 * (bins - 1)}, hop = {hop or bins - 1}, window = "sqrt_hann"'
    layout = f"{input_axes.layout(['F'])},2"
    front = [f'stft = {{ {transform}{_layout(layout)} }}\nas = "spectrum"', "magnitude = {}"]
    notes = [f"{bins} values in each frame are assumed to be magnitudes"]
    back, lines = list[str](), list[str]()
    if output_axes == input_axes:
        back = [
            'mask = {}\nfrom = ["spectrum", "mask"]',
            f'istft = {{ {transform}, length = "T"{_layout(layout)} }}',
        ]
        lines = ['as = "mask"']
        notes.append("its output of the same size is assumed to be a mask")
    notes += _transform_notes(bins, back, hop)
    output_layout = layout if back else ""
    return Guess(
        front=front,
        back=back,
        model_lines=lines,
        rate_hz=RATE_OF_BINS[bins],
        notes=notes,
        kind="magnitudes",
        samples=2 * (bins - 1),
        input_layout=layout,
        output_layout=output_layout,
    )


def _guess_features(input_axes: _Axes, output_axes: _Axes | None, hop: int | None) -> Guess | None:
    """Guess a filter bank before a model of 80 bands, one frame or several of them side by side."""
    if len(input_axes.sizes) != 1:
        return None
    (size,) = input_axes.sizes
    if input_axes.time == 0 and size == MICRO_BANDS and input_axes.coded:
        note = f"codes of {size} bands are assumed to be those of TensorFlow Lite Micro's front end (microWakeWord)"
        return Guess(["micro_frontend = {}"], notes=[note], kind="features")
    if input_axes.time and size in USUAL_BANDS:
        bank = f'mel_spectrogram = {{ n_mels = {size}, log = "natural", output_layout = "F,T" }}'
        return Guess(
            [bank],
            notes=[
                f"{count_of(size, 'band')} on the axis before time are assumed to be a mel spectrogram with a "
                "natural logarithm"
            ],
            kind="features",
        )
    for frames in range(1, 12):
        bands = size // frames
        if input_axes.time == 0 and size % frames == 0 and bands in ((80,) if frames > 1 else USUAL_BANDS):
            notes = [
                f"{bands} bands are assumed to be Kaldi's filter bank",
                'features are often normalised: if so, add a stage such as cmvn = { path = "cmvn.ark" } after them',
            ]
            front = [f"kaldi_fbank = {{ num_mel_bins = {bands} }}"]
            if frames > 1:
                step = STACK_STEPS.get(frames, 1)
                front.append(f"stack = {{ m = {frames}, n = {step} }}")
                notes.append(f"{size} = {frames} x {bands}: {count_of(frames, 'frame')} as one, every {step}")
            return Guess(front, notes=notes, kind="features")
    return None


def _guess_blocks(input_axes: _Axes, output_axes: _Axes | None, hop: int | None) -> Guess | None:
    """Guess frames of samples before a model, and overlap-add after it if its output has such frames too."""
    if len(input_axes.sizes) != 1 or input_axes.time or input_axes.sizes[0] not in USUAL_BLOCKS:
        return None
    return guess_frames(input_axes.sizes[0], output_axes == input_axes, hop)


def guess_frames(size: int, gives_frames: bool, hop: int | None) -> Guess:
    """Guess overlapping frames of samples before a model; ``gives_frames``: its output has such frames too."""
    step = hop or size // 4
    start = size - step
    back = [f"overlap_add = {{ size = {size}, hop = {step}, trim_end = {start} }}"] if gives_frames else []
    every = f"one every {step}, " if hop is None else ""
    notes = [f"{size} values are assumed to be the samples of a frame, {every}without a window"]
    front = [f"frames = {{ size = {size}, hop = {step}, pad_start = {start} }}"]
    return Guess(front, back, notes=notes, kind="frames", samples=size)


def _guess_sound(input_axes: _Axes, output_axes: _Axes | None, hop: int | None) -> Guess | None:
    """Guess nothing around a model of audio."""
    return Guess() if all(size == 1 for size in input_axes.sizes) else None


def _layout(layout: str) -> str:
    return "" if layout == "F,T,2" else f', layout = "{layout}"'


def _transform_notes(bins: int, back: Sequence[str], hop: int | None) -> list[str]:
    size = 2 * (bins - 1)
    guessed = f"a hop of {size // 2} and the root of a Hann window are guesses"
    notes = [
        f"{bins} frequencies are those of a transform of {count_of(size, 'sample')}; "
        f"{guessed if hop is None else 'the root of a Hann window is a guess'}"
    ]
    return notes if back else [*notes, "no inverse transform takes its output"]


_ATTEMPTS: Sequence[Callable[[_Axes, _Axes | None, int | None], Guess | None]] = (
    _guess_complex,
    _guess_magnitudes,
    _guess_features,
    _guess_blocks,
    _guess_sound,
)
