"""Cases that share a test."""

import pytest

from tests.failed_cases import in_one_test


def test_all_failed_cases_are_named() -> None:
    numbers: list[int] = []

    @in_one_test("number", [1, 2, 3, 4])
    def check(number: int) -> None:
        numbers.append(number)
        assert number != 2
        if number == 4:
            pytest.fail("four")

    with pytest.raises(AssertionError) as raised:
        check()
    assert numbers == [1, 2, 3, 4]
    assert [name in str(raised.value) for name in ("{'number': 1}", "{'number': 2}", "{'number': 4}")] == [
        False,
        True,
        True,
    ]


def test_another_error_carries_the_name_of_its_case() -> None:
    @in_one_test(("left", "right"), [(1, 1), (1, 0)])
    def divide(left: int, right: int) -> None:
        assert left // right

    with pytest.raises(ZeroDivisionError) as raised:
        divide()
    assert "{'left': 1, 'right': 0}" in "".join(raised.value.__notes__)
