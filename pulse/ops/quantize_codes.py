"""The int8 codes of rounded rows; see ``quantize_activations``. Kernels use this module too, so it imports no op."""

MAX_CODE = 127
"""The largest magnitude of a code: -128 is not used."""
ZERO_CODE = 128
"""Added to the codes of weights, which are stored without signs."""
MAX_ROW_ELEMENTS = 4096
"""Maximum number of elements of a row: sums of their products with codes of weights stay well within int32."""
MIN_MAGNITUDE = 2.0**-96
"""A row whose largest magnitude is smaller counts as zeros."""
