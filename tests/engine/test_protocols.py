"""The limit of a wait for the store."""

import asyncio

import pytest

from fairwarning.engine.protocols import StoreDown, within


async def test_a_wait_for_the_store_ends_at_its_limit() -> None:
    with pytest.raises(StoreDown, match=r"within 0\.001 s"):
        await within(0.001, asyncio.Event().wait())


async def test_an_answer_and_an_error_are_passed_on() -> None:
    async def fails() -> None:
        raise ValueError("no")

    assert await within(None, asyncio.sleep(0, "yes")) == "yes"
    with pytest.raises(ValueError, match="no"):
        await within(600, fails())
