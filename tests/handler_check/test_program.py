"""`fairwarning check` as people and CI services use it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from tests.handler_check.expected_failures import VARIANTS
from tests.support.patience import HANG_S

GOOD = [sys.executable, str(VARIANTS), "none"]
PATIENT = ["--patience", f"{HANG_S:.0f}s"]
IGNORANT = [sys.executable, str(VARIANTS), "ignores_resources"]


def fairwarning_check(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fairwarning", "check", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )


def test_the_list_needs_no_handler() -> None:
    done = fairwarning_check("--list")
    assert done.returncode == 0
    assert "neighbour  " in done.stdout


def test_a_case_that_is_chosen_and_left_out_is_left_out() -> None:
    chosen = ["--case", "neighbour", "--case", "own-event"]
    done = fairwarning_check("--list", "--json", *chosen, "--skip", "neighbour")
    assert [each["case"] for each in json.loads(done.stdout)["cases"]] == ["own-event"]


def test_a_good_handler_gives_0_and_json_says_all() -> None:
    done = fairwarning_check(*PATIENT, "--json", "--case", "own-event", "--", *GOOD)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [(each["case"], each["verdict"]) for each in told["results"]] == [
        ("own-event", "passed")
    ]
    assert told["results"][0]["points"][0]["did"] == "it approved"


def test_a_bad_handler_gives_1_and_reports_in_every_form(tmp_path: Path) -> None:
    xml, page = tmp_path / "report.xml", tmp_path / "report.html"
    chosen = ["--case", "own-event", "--case", "neighbour"]
    reports = ["--junit", str(xml), "--html", str(page)]
    done = fairwarning_check(*PATIENT, *chosen, *reports, "--", *IGNORANT)
    assert done.returncode == 1
    assert "FAIL  neighbour" in done.stdout
    assert "did       it approved it" in done.stdout
    assert "1 passed, 1 failed of 2 cases" in done.stdout
    suite = Xml.parse(xml).getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == ["neighbour"]
    text = page.read_text()
    assert "neighbour" in text
    assert "prefers-color-scheme" in text
    assert "http" not in text.replace("https://", "").split("<body>")[0]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--", "no-such-program-anywhere"], "no-such-program-anywhere"),
        ([], "fairwarning check --"),
        (["--case", "nonsense", "--", "true"], "own-event"),
        ([*PATIENT, "--", "sh", "-c", "echo my own trouble; exit 3"], "my own trouble"),
        (["--patience", "1s", "--no-namespace", "--", "sleep", "60"], "FAIRWARNING_METADATA_URL"),
        (["--vm", "no name", "--", "true"], "no name"),
    ],
)
def test_what_cannot_be_started_gives_2_and_says_what_to_do(
    arguments: list[str], hint: str
) -> None:
    done = fairwarning_check(*arguments)
    assert done.returncode == 2
    assert hint in done.stderr
    assert "Traceback" not in done.stderr


def test_a_first_poll_that_is_refused_is_shown_with_what_is_missing() -> None:
    code = (
        "import os, time, urllib.request as u\n"
        "url = os.environ['FAIRWARNING_METADATA_URL']\n"
        "while True:\n"
        "    try: u.urlopen(url + '/metadata/scheduledevents?api-version=2020-07-01')\n"
        "    except OSError: time.sleep(0.1)\n"
    )
    done = fairwarning_check("--patience", "1s", "--", sys.executable, "-c", code)
    assert done.returncode == 2
    assert "/metadata/scheduledevents?api-version=2020-07-01" in done.stderr
    assert "Required metadata header not specified" in done.stderr


def test_the_grade_is_machine_readable_and_an_image(tmp_path: Path) -> None:
    image, badge = tmp_path / "badge.svg", tmp_path / "badge.json"
    chosen = ["--vm", "workers_1", "--case", "own-event", "--json"]
    done = fairwarning_check(*PATIENT, *chosen, "--badge", str(image), "--", *GOOD)
    grade = json.loads(done.stdout)["grade"]
    assert (grade["passed"], grade["failed"]) == (1, 0)
    assert grade["text"] in image.read_text()
    done = fairwarning_check(*PATIENT, *chosen, "--badge", str(badge), "--", *GOOD)
    assert json.loads(badge.read_text())["message"] == grade["text"]


@pytest.mark.parametrize("option", ["--case", "--patience=1s", "--no-namespace", "--json"])
def test_an_option_behind_the_command_is_not_swallowed_in_silence(option: str) -> None:
    done = fairwarning_check("./handler", "--own", option, "neighbour")
    assert done.returncode == 2
    name = option.partition("=")[0]
    assert f"fairwarning check {name} … -- ./handler" in done.stderr
    assert "write -- before its command" in done.stderr


def test_behind_two_dashes_all_is_the_handlers_own() -> None:
    code = "import sys; sys.exit(f'I got {sys.argv[1:]}')"
    handler = [sys.executable, "-c", code, "--json", "--case"]
    done = fairwarning_check(*PATIENT, "--", *handler)
    assert "I got ['--json', '--case']" in done.stderr


def test_url_and_name_are_filled_into_the_command() -> None:
    code = (
        "import sys, time, urllib.request as u\n"
        "url, vm = sys.argv[1:]\n"
        "assert url.endswith('/vm/' + vm)\n"
        "ask = u.Request(url + '/metadata/scheduledevents?api-version=2020-07-01',"
        " headers={'Metadata': 'true'})\n"
        "while True: u.urlopen(ask).read(); time.sleep(0.1)\n"
    )
    handler = [sys.executable, "-c", code, "{url}", "{vm}"]
    done = fairwarning_check(*PATIENT, "--no-namespace", "--case", "neighbour", "--", *handler)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_behind_when_it_is_interrupted(which: signal.Signals) -> None:
    """Also of handlers that start others: here a shell with a child."""
    mark = f"{os.getpid()}.{which}"
    handler = ["sh", "-c", f"{sys.executable} {VARIANTS} none {mark}; true"]
    running = subprocess.Popen(
        [sys.executable, "-m", "fairwarning", "check", "--", *handler],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    _wait(lambda: len(_with(mark)) > 4)
    running.send_signal(which)
    running.wait(HANG_S)
    _wait(lambda: not _with(mark))


def _wait(condition: object, timeout_s: float = HANG_S) -> None:
    """Processes of others tell nobody when they come and go."""
    assert callable(condition)
    ends = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < ends, "not in time"
        time.sleep(0.05)


def _with(mark: str) -> list[str]:
    """Commands of running processes that have this in them."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = each.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if mark in text and str(os.getpid()) not in each.parts:
            found.append(text)
    return found
