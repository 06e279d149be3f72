"""The cells of recurrent layers: activations, and one frame of each kind, in float64."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pulse.ops.arithmetic import round_inside
from pulse.ops.quantize_rows import round_rows
from pulse.support.record import record

Wide: TypeAlias = NDArray[np.float64]
CellKind: TypeAlias = Literal["rnn", "gru", "lstm"]

GATES: Mapping[CellKind, int] = {"rnn": 1, "gru": 3, "lstm": 4}
"""How many gates a cell has; in the order of ONNX: gru z r h, lstm i o f c."""
CELL_STEPS: Mapping[CellKind, int] = {"rnn": 1 * 3, "gru": 3 * 3 + 5, "lstm": 4 * 3 + 5}
"""Operations per element of the state: for each gate two additions and an activation, and for the new state of a gru a
product with the reset gate, 1 - z, two products and a sum; of an lstm two products, a sum, tanh and a product.
Peepholes come on top."""
CELL_CALLS = 6
"""Calls of numpy for each frame of a layer."""

_FORMS: Mapping[str, Callable[[Wide, float, float], Wide]] = {
    "sigmoid": lambda x, alpha, beta: 1 / (1 + np.exp(-x)),
    "tanh": lambda x, alpha, beta: np.tanh(x),
    "relu": lambda x, alpha, beta: np.maximum(x, 0),
    "affine": lambda x, alpha, beta: alpha * x + beta,
    "leakyrelu": lambda x, alpha, beta: np.where(x < 0, alpha * x, x),
    "thresholdedrelu": lambda x, alpha, beta: np.where(x > alpha, x, 0),
    "scaledtanh": lambda x, alpha, beta: alpha * np.tanh(beta * x),
    "hardsigmoid": lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
    "elu": lambda x, alpha, beta: np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x),
    "softsign": lambda x, alpha, beta: x / (1 + np.abs(x)),
    "softplus": lambda x, alpha, beta: np.logaddexp(x, 0),
}

PARAMETERS: Mapping[str, tuple[float, ...]] = {
    "sigmoid": (),
    "tanh": (),
    "relu": (),
    "affine": (1.0, 0.0),
    "leakyrelu": (0.01,),
    "thresholdedrelu": (1.0,),
    "scaledtanh": (1.0, 1.0),
    "hardsigmoid": (0.2, 0.5),
    "elu": (1.0,),
    "softsign": (),
    "softplus": (),
}
"""The activations, and the defaults of the parameters that each takes: alpha, then beta."""


@record
class Activation:
    """A function of each element; alpha and beta as ONNX names them."""

    name: str
    alpha: float = 0.0
    beta: float = 0.0

    def __call__(self, x: Wide) -> Wide:
        return _FORMS[self.name](x, self.alpha, self.beta)

    def __str__(self) -> str:
        values = (self.alpha, self.beta)[: len(PARAMETERS[self.name])]
        return self.name + (f"({', '.join(f'{value:g}' for value in values)})" if values else "")


@record
class Cell:
    """How one frame of a recurrent layer changes its state.

    kind                 rnn, gru or lstm
    activations          rnn f; gru f g; lstm f g h
    clip                 the inputs of the gates' activations stay within -clip … clip; None: no limit
    linear_before_reset  gru: the reset gate multiplies what comes out of the recurrent product, not what goes in
    input_forget         lstm: the forget gate is 1 - input gate
    rounds_rows          what is multiplied by the recurrent weights is rounded to rows of int8 first (``round_rows``)
    """

    kind: CellKind
    activations: tuple[Activation, ...]
    clip: float | None = None
    linear_before_reset: bool = False
    input_forget: bool = False
    rounds_rows: bool = False

    @property
    def states(self) -> int:
        """How many tensors the state is made of: h, and c of an lstm."""
        return 2 if self.kind == "lstm" else 1

    def step(
        self, x: Wide, state: Sequence[Wide], r: Wide, bias: Wide, peepholes: Wide | None
    ) -> tuple[Wide, ...]:
        """The state after one frame.

        x          [B, G*H], the frame times the input weights, plus their bias
        state      h [B, H], and c of an lstm
        r, bias    [G*H, H] and [G*H], the recurrent weights
        peepholes  [3*H] for the gates i o f, of an lstm
        """
        if self.kind == "rnn":
            return (self._apply(0, x + self._row(state[0]) @ r.T + bias),)
        if self.kind == "gru":
            return (round_inside(self._gru(x, state[0], r, bias)),)
        return self._lstm(x, state[0], state[1], r, bias, peepholes)

    def _row(self, h: Wide) -> Wide:
        return round_rows(h) if self.rounds_rows else h

    def _apply(self, number: int, x: Wide) -> Wide:
        clipped = x if self.clip is None else np.clip(x, -self.clip, self.clip)
        return round_inside(self.activations[number](clipped))

    def _gru(self, x: Wide, h: Wide, r: Wide, bias: Wide) -> Wide:
        size, row = h.shape[1], self._row(h)
        gates = self._apply(0, x[:, : 2 * size] + row @ r[: 2 * size].T + bias[: 2 * size])
        update, reset = gates[:, :size], gates[:, size:]
        last, last_bias = r[2 * size :], bias[2 * size :]
        if self.linear_before_reset:
            own = reset * (row @ last.T + last_bias)
        else:
            own = self._row(reset * h) @ last.T + last_bias
        fresh = self._apply(1, x[:, 2 * size :] + own)
        return (1 - update) * fresh + update * h

    def _lstm(
        self, x: Wide, h: Wide, c: Wide, r: Wide, bias: Wide, peepholes: Wide | None
    ) -> tuple[Wide, Wide]:
        size = h.shape[1]
        i, o, f, fresh = np.split(x + self._row(h) @ r.T + bias, 4, axis=1)
        pi, po, pf = (0.0, 0.0, 0.0) if peepholes is None else np.split(peepholes, 3)
        assert i.shape[1] == size
        enter = self._apply(0, i + pi * c)
        forget = 1 - enter if self.input_forget else self._apply(0, f + pf * c)
        c = round_inside(forget * c + enter * self._apply(1, fresh))
        return self._apply(0, o + po * c) * self.activations[2](c), c
