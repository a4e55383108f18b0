"""The plugin as its users have it: nothing to import, a fresh server for each test."""

import pytest

ISOLATED = """
    def test_one(fairwarning):
        fairwarning.vm("web-0").document()
        assert fairwarning.schedule("Reboot", "web-0").id == FIRST
        assert len(fairwarning.events()) == 1

    def test_other(fairwarning):
        assert fairwarning.events(all=True) == [] and fairwarning.requests() == []
        fairwarning.vm("web-0").document()
        assert fairwarning.schedule("Reboot", "web-0").id == FIRST
"""
FIRST = "E3E70682-C209-4CAC-A29F-6FBED82C07CD"
HEAVY = ("schemathesis", "hypothesispytest", "anyio", "timeout")


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """In a process of its own, where the plugin is found as users' tests find it."""
    without = [word for name in HEAVY for word in ("-p", f"no:{name}")]
    return pytester.runpytest_subprocess(*without, *arguments)


def test_each_test_has_its_own_server_and_the_same_ids(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(f"FIRST = {FIRST!r}\n" + _dedented(ISOLATED))
    run(pytester).assert_outcomes(passed=2)


def test_tests_run_in_parallel(pytester: pytest.Pytester) -> None:
    many = "\n".join(
        f"""
def test_{number}(fairwarning):
    vm = fairwarning.vm("web-0")
    vm.document()
    fairwarning.schedule("Reboot", "web-0")
    fairwarning.advance(minutes=15)
    assert vm.document()["Events"][0]["EventStatus"] == "Started"
"""
        for number in range(6)
    )
    pytester.makepyfile(many)
    run(pytester, "-n", "2").assert_outcomes(passed=6)


def test_the_marker_settles_fleet_seed_and_start(pytester: pytest.Pytester) -> None:
    pytester.makefile(".toml", fleet='[[vm]]\nname = "solo"\n')
    pytester.makepyfile(
        """
        from datetime import UTC, datetime
        import pytest

        @pytest.mark.fairwarning(fleet="fleet.toml", seed=7, start=datetime(2030, 1, 1, tzinfo=UTC))
        def test_it(fairwarning):
            assert fairwarning.now.year == 2030
            fairwarning.vm("solo").document()
            assert fairwarning.schedule("Preempt", "solo").resources == ["solo"]
        """
    )
    run(pytester, "--strict-markers").assert_outcomes(passed=1)


@pytest.mark.parametrize("wrong", ["sead=7", "'fleet.toml'"])
def test_a_wrong_marker_says_what_it_takes(pytester: pytest.Pytester, wrong: str) -> None:
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.fairwarning({wrong})
        def test_it(fairwarning): ...
        """
    )
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*write one of fleet, seed, start*"])


def test_a_mistake_in_the_fleet_names_its_line(pytester: pytest.Pytester) -> None:
    pytester.makefile(".toml", fleet='[[vm]]\nname = "solo"\ncolour = "red"\n')
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.fairwarning(fleet="fleet.toml")
        def test_it(fairwarning): ...
        """
    )
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*colour*"])


def test_coroutines_may_use_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import asyncio

        async def test_it(fairwarning):
            vm = fairwarning.vm("web-0")

            async def poll():
                await asyncio.to_thread(vm.document)

            task = asyncio.create_task(poll())
            await fairwarning.until(lambda fw: fw.requests("web-0"))
            await task
        """
    )
    run(pytester, "-o", "asyncio_mode=auto").assert_outcomes(passed=1)


def test_who_does_not_use_it_does_not_load_the_server(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_it():
            assert "fairwarning.node" not in sys.modules
        """
    )
    run(pytester).assert_outcomes(passed=1)


def _dedented(text: str) -> str:
    return "\n".join(line.removeprefix("    ") for line in text.splitlines())
