"""A virtual clock that a restart does not turn back."""

from pathlib import Path

from tests.control.rig import running


async def test_a_virtual_clock_goes_on_where_it_stood(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/fw.db"
    async with running(store_url=url) as rig:
        stood = await rig.post("/clock/advance", {"by": "400d"})
    async with running(store_url=url) as rig:
        assert await rig.get("/clock") == stood


async def test_a_real_clock_cannot_be_moved(tmp_path: Path) -> None:
    async with running(is_clock_virtual=False) as rig:
        problem = await rig.post("/clock/advance", {"by": "1m"}, 409)
        assert problem["code"] == "clock-is-real"
        assert (await rig.get("/clock"))["virtual"] is False
