import pytest

from registry.base_models.modules import base_modules
from registry.base_models.slots import element_bytes, vllm_rank, vllm_slot_bytes
from tests.factories.adapters import HIDDEN, LAYERS, VOCABULARY, tiny_description
from tests.unit.workers.validation.adapters import BASE, base


@pytest.mark.parametrize(("rank", "step"), [(1, 1), (2, 8), (8, 8), (16, 16), (17, 32), (300, 320), (600, 600)])
def test_vllm_has_steps_of_ranks(rank: int, step: int) -> None:
    assert vllm_rank(rank) == step


def test_slots_hold_the_base_s_type_and_two_bytes_for_a_quantised_base() -> None:
    assert [element_bytes(described) for described in (BASE, base(dtype="F32"), base(dtype="I8"))] == [2, 4, 2]


def test_a_slot_of_vllm_has_room_for_every_module_at_the_largest_rank() -> None:
    described = tiny_description()
    # Four projections in each layer, the embedding, and the head that is tied to it.
    values = LAYERS * 4 * 2 * HIDDEN + 2 * (VOCABULARY + HIDDEN)
    assert vllm_slot_bytes(base_modules(described), described, max_rank=12) == 4 * 16 * values
