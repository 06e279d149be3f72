"""``python -m bench.calls``: the time that Python adds to a step, for a model of one Relu."""

from bench.performance.calls import call_times


def main() -> None:
    """Print the time of each call."""
    for row in call_times():
        print(f"{row.name:19} {row.us:6.2f} us, {row.over_us:6.2f} us over the machine")


if __name__ == "__main__":
    main()
