"""Each check of a driver is seen red: with the example of the docs, after one line was spoiled."""

from pathlib import Path

import pytest

from tests.driver_check.program import EXAMPLE, check_processes, failures

GOOD = EXAMPLE.read_text()


def spoiled(*pairs: tuple[str, str]) -> str:
    text = GOOD
    for before, after in pairs:
        assert before in text
        text = text.replace(before, after)
    return text


FORGETS_DONE = spoiled(("            if key.state is Found.DONE:\n                return\n", ""))
DONE_TOO_EARLY = spoiled(
    ("key.state = Found.RUNNING", "key.state = Found.DONE"),
    (" and key.state is not Found.DONE", ""),
)
OWN_MEMORY = spoiled(
    (
        "    def __init__(self, clock):\n",
        "    def memory(self, order):\n"
        "        folder = Path(order.settings['folder'], order.node)\n"
        "        folder.mkdir(exist_ok=True)\n"
        "        return KeyFiles(folder).of(order)\n\n"
        "    def __init__(self, clock):\n",
    ),
    ('KeyFiles(order.settings["folder"]).of(order)', "self.memory(order)"),
    # So that the impacts of two attempts cannot fall together.
    ("order.duration_s * 1000", "order.duration_s * 1000 * order.attempt"),
)
NO_FENCE = spoiled(("            key.refuse_lower(order.attempt)\n", ""))
ANY_HANDLE = spoiled(
    ("            raise DriverFailed(str(error)) from None\n", "            pass\n")
)
ANY_TIME = spoiled(
    (
        "\n        with KeyFiles(order.settings",
        '\n        if not Path(order.settings["folder"]).exists():\n'
        "            return Found.UNKNOWN\n"
        "        with KeyFiles(order.settings",
    )
)
STUBBORN = spoiled(
    (
        "                await alarm.wait(until)\n",
        "                try:\n"
        "                    await alarm.wait(until)\n"
        "                except BaseException:\n"
        "                    pass\n",
    )
)
BREAKS = spoiled(("            key.refuse_lower(order.attempt)\n", "            {}['x']\n"))


@pytest.mark.parametrize(
    ("text", "check", "says"),
    [
        (FORGETS_DONE, "once", " impacts and not 1"),
        (DONE_TOO_EARLY, "crash", "killed in gap 1 (waiting), a had 0 impacts and not 1"),
        (OWN_MEMORY, "two-nodes", " had 2 impacts and not 1"),
        (NO_FENCE, "lower-attempt", "attempt 1 was carried out after another node had asked"),
        (ANY_HANDLE, "wrong-handle", "does not exist was reported as done"),
        (ANY_TIME, "away", "do returned while the hypervisor was away"),
        (BREAKS, "once", "ended with KeyError: 'x'; a driver that cannot do something must raise"),
    ],
)
def test_a_faulty_driver_is_caught(text: str, check: str, says: str, tmp_path: Path) -> None:
    report = check_processes(tmp_path, text, "--only", check)
    assert list(failures(report)) == [check]
    assert says in failures(report)[check]


def test_a_driver_that_cannot_be_cancelled_is_caught(tmp_path: Path) -> None:
    more = ("--only", "cancellation", "--duration", "600s", "--patience", "2s")
    report = check_processes(tmp_path, STUBBORN, *more)
    assert failures(report) == {"cancellation": "the end of a cancelled do did not come within 2 s"}


def test_the_driver_of_the_docs_passes(tmp_path: Path) -> None:
    report = check_processes(tmp_path, GOOD)
    assert failures(report) == {}
    assert {each["verdict"] for each in report["results"]} == {"passed"}
    assert report["package"] == "processes 1.0"
