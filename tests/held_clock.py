"""A simulated clock for what measures time between messages."""


class HeldClock:
    """A clock that only the test moves.

    now_s     its time in seconds
    readings  how often it was read
    """

    def __init__(self, now_s: float = 0.0) -> None:
        self.now_s, self.readings = now_s, 0

    def __call__(self) -> float:
        self.readings += 1
        return self.now_s

    def was_read_since(self, readings: int) -> bool:
        """Whether the clock was read at least twice after its ``readings``-th reading.

        Then the work after the first of them is complete.
        """
        return self.readings >= readings + 2
