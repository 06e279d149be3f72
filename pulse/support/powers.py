"""Powers of two."""


def next_power_of_two(number: int) -> int:
    """Return the smallest power of two that is at least ``number``, and at least 1."""
    return 1 << max(number - 1, 0).bit_length()
