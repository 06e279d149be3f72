"""Functions that numpy does not have, by their definition."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def sigmoid(x: NDArray[Any]) -> NDArray[Any]:
    return 1 / (1 + np.exp(-x))
