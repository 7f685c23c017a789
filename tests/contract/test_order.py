"""Contract: whom a freed slot goes to under ``--scheduling-policy priority``."""

import httpx

from support.openai_calls import a_chat, served_in_order


async def order_of(client: httpx.AsyncClient, priorities: list[int]) -> list[int]:
    """Queue one call of each priority while the engine is busy; return the priorities as they are served."""
    bodies = [a_chat(f"call {priority}", priority=priority) for priority in priorities]
    return [priorities[place] for place in await served_in_order(client, bodies, slots=2)]


async def test_the_lowest_number_goes_first(client: httpx.AsyncClient) -> None:
    # Two are let in at once, so neighbours may swap; the halves may not.
    served = await order_of(client, [40, 30, 20, 10])
    assert set(served[:2]) == {10, 20}


async def test_a_negative_number_goes_before_zero(client: httpx.AsyncClient) -> None:
    served = await order_of(client, [0, 1, 2, -5])
    assert set(served[:2]) == {-5, 0}
