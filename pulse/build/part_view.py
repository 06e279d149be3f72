"""A view of a part, as far as it needs no handle of a node: its model, its runs, its backend, type and layout."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from pulse.build.conversions import LAYOUTS, convert_layout, convert_types, round_parameters
from pulse.build.drawing import Part
from pulse.errors import InputError
from pulse.facts import Array, dtype_name
from pulse.models import HasModel, Model, model_of
from pulse.pulsify.receptive_fields import ReceptiveField
from pulse.support.naming import require_name


class PartView(HasModel):
    """The base class of views of a part."""

    part: Part

    @property
    def name(self) -> str:
        """The name of the view in models; empty for none."""
        return self.part.name

    @property
    def backend(self) -> str:
        """The backend on which programs run its nodes; empty for the program's backend."""
        return self.part.backend

    def unsupported_operators(self) -> list[str]:
        """Return the operators that nothing can compute, by name."""
        ops = [self.part.graph.nodes[node_id].op for node_id in self.part.nodes]
        return sorted({op.name for op in ops if not op.is_supported})

    def graph(
        self,
        inputs: Mapping[str, str] | str | None = None,
        outputs: Sequence[str] | None = None,
        title: str = "model",
    ) -> Model:
        """Return the part as a separate model, which ``pulse.load`` and all other calls take.

        inputs   name -> shape, such as ``{"x": "1,80,T"}``; the shape alone if there is one input. Others
                 are found from the weights, or were given with the Connector
        outputs  their names; by default their nodes' names
        Raises   InputError: no such input, no such shape, another number of names
        """
        if isinstance(inputs, str):
            names = self.part.input_names()
            if len(names) != 1:
                raise InputError(f"{title}: give shapes by name, the inputs are {', '.join(names) or 'none'}")
            inputs = {names[0]: inputs}
        return model_of(self.part.network(inputs or {}, outputs, title))

    def to_model(self, inputs: Mapping[str, str] | None = None) -> Model:
        return self.graph(inputs)

    def forward(self, feeds: Mapping[str, Array] | Array) -> dict[str, Array]:
        """Compute its outputs in numpy from ``feeds``; nothing outside the view is computed.

        feeds   input -> array; one array if there is one input
        Raises  InputError: another input, or arrays that do not fit
        """
        names = self.part.input_names()
        if not isinstance(feeds, Mapping):
            if len(names) != 1:
                raise InputError(f"the view has the inputs {', '.join(names) or 'none'}; feed them by name")
            feeds = {names[0]: feeds}
        if missing := sorted(set(names) - set(feeds)):
            raise InputError(f"the view's input {', '.join(missing)} is not fed")
        arrays = {name: np.asarray(array) for name, array in feeds.items()}
        return self.graph(_shapes(arrays)).analyse().run(arrays)

    def receptive_field(
        self, inputs: Mapping[str, str] | str | None = None, symbol: str | None = None
    ) -> dict[str, ReceptiveField]:
        """Return for each output the frames of the input that one of its frames depends on.

        inputs, symbol  see ``graph`` and ``pulse.load``
        Raises  PulsifyError: the view does not stream
        """
        return self.graph(inputs).analyse().declutter().pulsify(symbol).receptive_fields

    def set_backend(self, backend: str, kernel: str = "") -> None:
        """Make programs run its nodes on a backend, and if there are several kernels of an operator, by that one.

        backend  ``numba``, ``numpy`` or ``onnxruntime``; "" for the program's backend
        kernel   such as ``fft`` of convolutions in numpy; see docs/aidge.md
        """
        self.part.backend, self.part.kernel = backend, kernel
        self.part.drawing.keep(self.part)

    def set_dtype(self, dtype: str, weights_only: bool = False) -> None:
        """Make its nodes compute in another float type: its parameters are rounded, its inputs and outputs cast.

        Its inputs and outputs stay f32, and must be floats. Streams compute in f32 for f16, between the casts. For f64,
        give the view the backend ``numpy`` too: other kernels have f32 products.

        dtype         ``f16``, ``f32`` or ``f64``
        weights_only  round the parameters and compute in f32; programs then store f16 parameters in 16 bits
        Raises        InputError: another type
        """
        if weights_only:
            round_parameters(self.part.drawing, self.part.nodes, dtype)
        else:
            self.part.convert(partial(convert_types, name=dtype))

    def set_layout(self, layout: str) -> None:
        """Put the channels of its tensors last (``NHWC``): transposes are added, which decluttering absorbs.

        Its open inputs, and results that nothing reads, have channels last from now on. ``NCHW`` changes nothing.
        Raises InputError: another layout, or an operator that names axes
        """
        require_name("layout", layout, LAYOUTS, InputError)
        if layout == "NHWC":
            self.part.convert(convert_layout)


def _shapes(arrays: Mapping[str, Array]) -> dict[str, str]:
    return {
        name: ",".join([*map(str, array.shape), dtype_name(array.dtype)]) for name, array in arrays.items()
    }
