from hypothesis import given
from hypothesis import strategies as st

from registry.stores.parts import MAX_PARTS, PartPlan

MIB = 1024 * 1024


@given(size=st.integers(1, 50 * 1024**3), part_bytes=st.integers(5 * MIB, 64 * MIB))
def test_parts_cover_a_file_exactly_and_are_few_enough(size: int, part_bytes: int) -> None:
    plan = PartPlan.of(size, part_bytes=part_bytes)
    sizes = [plan.size_of(number) for number in range(1, plan.count + 1)]
    assert sum(sizes) == size
    assert plan.count <= MAX_PARTS
    assert all(part == plan.part_bytes for part in sizes[:-1])
    assert 0 < sizes[-1] <= plan.part_bytes
    assert plan.part_bytes >= part_bytes


def test_a_file_that_fits_keeps_the_wanted_size() -> None:
    assert PartPlan.of(1000 * 16 * MIB, part_bytes=16 * MIB).part_bytes == 16 * MIB
    assert PartPlan.of(1000 * 16 * MIB + 1, part_bytes=16 * MIB).part_bytes == 17 * MIB
