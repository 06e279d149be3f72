"""The result of specialising the kernels of a program."""

from pulse.support.record import record
from pulse.support.wording import count_of


@record
class Specialisation:
    """The result of specialising a program.

    reason    why streams do not run specialised kernels; empty if they do
    kernels   the kernels that are specialised
    rows      the number of specialised rows
    total     the number of all rows
    before_s  seconds of a step with generic kernels, on this machine
    after_s   seconds of a step with specialised kernels, measured in turns with the others
    seconds   the processor time of compilation and comparison
    nbytes    the bytes of machine code
    """

    reason: str
    kernels: tuple[str, ...]
    rows: int
    total: int
    before_s: float
    after_s: float
    seconds: float
    nbytes: int

    @property
    def used(self) -> bool:
        """Whether streams run specialised kernels."""
        return not self.reason

    @property
    def gain(self) -> float:
        """The speed-up of a step."""
        return self.before_s / self.after_s

    def __str__(self) -> str:
        cost = f"{self.seconds:.1f} s, {self.nbytes / 1e6:.2f} MB"
        if not self.used:
            return f"not used: {self.reason} ({cost})"
        return f"{self.rows} of {count_of(self.total, 'instruction')}, a step {self.gain:.2f} times as fast ({cost})"
