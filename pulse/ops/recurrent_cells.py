"""The cells of recurrent layers: activations, and one frame of each kind, in float64."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pulse.facts import Doubles
from pulse.ops.arithmetic import round_inside
from pulse.ops.elementwise_functions import ELEMENTWISE
from pulse.ops.quantize_activations import round_to_form
from pulse.ops.recurrent_gates import CellKind
from pulse.ops.weight_units import ActivationForm
from pulse.support.record import record

CELL_STEPS: Mapping[CellKind, int] = {"rnn": 1 * 3, "gru": 3 * 3 + 5, "lstm": 4 * 3 + 5}
"""Operations per element of the state: for each gate two additions and an activation, and for the new state of a gru a
product with the reset gate, 1 - z, two products and a sum; of an lstm two products, a sum, tanh and a product.
Peepholes come on top."""
CELL_CALLS = 6
"""Calls of numpy for each frame of a layer."""

USUAL_ACTIVATIONS: Mapping[CellKind, tuple[str, ...]] = {
    "rnn": ("tanh",),
    "gru": ("sigmoid", "tanh"),
    "lstm": ("sigmoid", "tanh", "tanh"),
}
"""The activations of a cell whose node names none: rnn f; gru f g; lstm f g h."""

ACTIVATION_DEFAULTS: Mapping[str, Mapping[str, float]] = {
    "sigmoid": {},
    "tanh": {},
    "relu": {},
    "affine": {"alpha": 1.0, "beta": 0.0},
    "leaky_relu": {"alpha": 0.01},
    "thresholded_relu": {"alpha": 1.0},
    "scaled_tanh": {"alpha": 1.0, "beta": 1.0},
    "hard_sigmoid": {"alpha": 0.2, "beta": 0.5},
    "elu": {"alpha": 1.0},
    "softsign": {},
    "softplus": {},
}
"""The activations, as the elementwise table spells them, and the parameters that each takes, with their defaults."""

_ONLY_IN_CELLS: Mapping[str, Callable[[Doubles, float, float], Doubles]] = {
    "affine": lambda x, alpha, beta: alpha * x + beta,
    "scaled_tanh": lambda x, alpha, beta: alpha * np.tanh(beta * x),
}


@record
class Activation:
    """A function of each element; alpha and beta as ONNX names them."""

    name: str
    alpha: float = 0.0
    beta: float = 0.0

    @property
    def parameters(self) -> tuple[float, ...]:
        """The parameters among alpha and beta that the function takes."""
        return (self.alpha, self.beta)[: len(ACTIVATION_DEFAULTS[self.name])]

    def __call__(self, x: Doubles) -> Doubles:
        if self.name in _ONLY_IN_CELLS:
            return _ONLY_IN_CELLS[self.name](x, self.alpha, self.beta)
        return ELEMENTWISE[self.name].run(x, *self.parameters)

    def __str__(self) -> str:
        values = self.parameters
        return self.name + (f"({', '.join(f'{value:g}' for value in values)})" if values else "")


@record
class Cell:
    """How one frame of a recurrent layer changes its state.

    kind                 rnn, gru or lstm
    activations          rnn f; gru f g; lstm f g h
    clip                 the inputs of the gates' activations stay within -clip … clip; None: no limit
    linear_before_reset  gru: whether the reset gate multiplies the result of the recurrent product, not its input
    input_forget         lstm: whether the forget gate is 1 - input gate
    rows                 the form to which ``round_to_form`` rounds what the recurrent weights multiply; None: no
                         rounding
    """

    kind: CellKind
    activations: tuple[Activation, ...]
    clip: float | None = None
    linear_before_reset: bool = False
    input_forget: bool = False
    rows: ActivationForm | None = None

    @property
    def state_count(self) -> int:
        """How many tensors the state is made of: h, and c of an lstm."""
        return 2 if self.kind == "lstm" else 1

    @property
    def resets_product(self) -> bool:
        """Whether a reset gate multiplies the recurrent product, and the bias inside it."""
        return self.kind == "gru" and self.linear_before_reset

    def step(
        self, x: Doubles, state: Sequence[Doubles], r: Doubles, bias: Doubles, peepholes: Doubles | None
    ) -> tuple[Doubles, ...]:
        """Return the state after one frame.

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

    def _row(self, h: Doubles) -> Doubles:
        return h if self.rows is None else round_to_form(h, self.rows)

    def _apply(self, gate: int, x: Doubles) -> Doubles:
        clipped = x if self.clip is None else np.clip(x, -self.clip, self.clip)
        return round_inside(self.activations[gate](clipped))

    def _gru(self, x: Doubles, h: Doubles, r: Doubles, bias: Doubles) -> Doubles:
        size, row = h.shape[1], self._row(h)
        gates = self._apply(0, x[:, : 2 * size] + row @ r[: 2 * size].T + bias[: 2 * size])
        update, reset = gates[:, :size], gates[:, size:]
        last, last_bias = r[2 * size :], bias[2 * size :]
        if self.linear_before_reset:
            recurrent_sum = reset * (row @ last.T + last_bias)
        else:
            recurrent_sum = self._row(reset * h) @ last.T + last_bias
        candidate = self._apply(1, x[:, 2 * size :] + recurrent_sum)
        return (1 - update) * candidate + update * h

    def _lstm(
        self, x: Doubles, h: Doubles, c: Doubles, r: Doubles, bias: Doubles, peepholes: Doubles | None
    ) -> tuple[Doubles, Doubles]:
        i, o, f, candidate_sum = np.split(x + self._row(h) @ r.T + bias, 4, axis=1)
        pi, po, pf = (0.0, 0.0, 0.0) if peepholes is None else np.split(peepholes, 3)
        input_gate = self._apply(0, i + pi * c)
        forget_gate = 1 - input_gate if self.input_forget else self._apply(0, f + pf * c)
        c = round_inside(forget_gate * c + input_gate * self._apply(1, candidate_sum))
        return self._apply(0, o + po * c) * self.activations[2](c), c
