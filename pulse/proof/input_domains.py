"""The domain of the float inputs of a proof: numbers for which the model itself returns no NaN and no infinity."""

from collections.abc import Mapping

import numpy as np

from pulse.errors import InputError
from pulse.ops.arithmetic import NATIVE, is_floating
from pulse.proof.oracle import Oracle
from pulse.proof.trial_signals import DOMAINS, InputDomain, IntegerRange, draw_feeds
from pulse.pulsify.network import PulsedNetwork


def find_domain(
    model: PulsedNetwork, oracle: Oracle, length: int, ranges: Mapping[str, IntegerRange]
) -> InputDomain:
    """Return the domain for which the offline model returns no NaN and no infinity for noise, or the fewest.

    It is the first domain, unless a later one leaves at most half as many of them.

    length  frames of the noise
    ranges  the ranges of the integer inputs
    """

    def count_others(domain: InputDomain) -> int:
        feeds = draw_feeds(model, length, "noise", 0, ranges, domain)
        with np.errstate(all="ignore"):
            outputs = oracle(feeds, NATIVE)
        floats = [values for values in outputs.values() if is_floating(values.dtype)]
        return sum(values.size - int(np.count_nonzero(np.isfinite(values))) for values in floats)

    best, fewest = DOMAINS[0], 0
    try:
        fewest = count_others(best)
        for domain in DOMAINS[1:]:
            if fewest and 2 * (others := count_others(domain)) <= fewest:
                best, fewest = domain, others
    except InputError:
        return DOMAINS[0]
    return best
