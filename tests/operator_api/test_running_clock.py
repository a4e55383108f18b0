"""`--clock-speed`: the API says the speed, time goes by itself, and a restart does not go back."""

from pathlib import Path

from fairwarning.core.instants import HOUR_MS, MINUTE_MS, later
from tests.operator_api.rig import running


async def test_a_running_clock_says_its_speed_and_starts_what_is_due() -> None:
    async with running(is_clock_virtual=False, clock_speed=20_000) as rig:
        face = await rig.get("/clock")
        assert (face["virtual"], face["speed"]) == (True, 20_000)
        await rig.activate("web-0")
        event = await rig.schedule(notice="15m")
        alarm = rig.clock.alarm()
        await alarm.wait(later(rig.clock.now(), 16 * MINUTE_MS))
        alarm.close()
        await rig.post("/clock/advance", {"by": "1h"})
        found = await rig.get(f"/events/{event['id']}")
        assert found["phase"] == "completed"
        assert found["started"] == event["notBefore"]


async def test_a_standing_clock_has_no_speed_and_the_real_one_has_its_own() -> None:
    async with running() as rig:
        assert (await rig.get("/clock"))["speed"] == 0
    async with running(is_clock_virtual=False) as rig:
        assert (await rig.get("/clock"))["speed"] == 1


async def test_a_running_clock_goes_on_where_it_stood(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/fw.db"
    async with running(store_url=url, clock_speed=100_000) as rig:
        alarm = rig.clock.alarm()
        await alarm.wait(later(rig.clock.now(), HOUR_MS))
        alarm.close()
        stood = (await rig.get("/clock"))["now"]
    async with running(store_url=url) as rig:
        assert (await rig.get("/clock"))["now"] >= stood
