"""The agent is killed, hangs, is reloaded and is stopped; systemd does what the unit file says."""

from collections.abc import Iterator

from tools.systemd.stage import AGENT, DROP_INS, PATIENCE_S, Stage
from tools.systemd.talking import wait_until

_STORY = "/var/lib/fairwarning/story"
_FREEZE_S = "5s"
_WATCHDOG_S = 5
"""The unit file has a minute, which is long to wait for."""


def kill_while_drained(stage: Stage) -> Iterator[str]:
    """The machine is really frozen, and the one who put the work away is dead by then."""
    id = stage.server.schedule("Freeze", duration=_FREEZE_S)
    order = stage.server.driver.next(PATIENCE_S)
    assert stage.server.event(id)["approvals"], "the freeze began without the agent's approval"
    _expect_story(stage, [f"drained by {AGENT}"])
    assert stage.guest.run("ls /etc/fairwarning/forbidden").code, "the agent could write to /etc"
    yield "as this user it ran a command, which could write to the state alone, and approved"
    pid = stage.agent_pid()
    with order:
        stage.guest.must(f"kill -KILL {pid}")
        stage.wait_for_restart(pid)
        stage.machine.freeze(order.duration_s)
    stage.server.wait_until_over(id)
    _expect_story(stage, [f"drained by {AGENT}", f"put back by {AGENT}"])
    yield "kill -9 while drained: systemd started it again, and after the freeze it put all back"


def _expect_story(stage: Stage, wanted: list[str]) -> None:
    def is_so() -> bool:
        return stage.guest.run(f"cat {_STORY}").output.splitlines() == wanted

    wait_until(f"the command has written {wanted}", is_so, PATIENCE_S)


def hang(stage: Stage) -> Iterator[str]:
    guest = stage.guest
    shipped = guest.show(AGENT, "WatchdogUSec")["WatchdogUSec"]
    assert shipped == "1min", shipped
    short = f"{DROP_INS}/watchdog.conf"
    guest.must(f"mkdir -p {DROP_INS} && echo '[Service]\nWatchdogSec={_WATCHDOG_S}' > {short}")
    guest.must("systemctl daemon-reload")
    stage.restart()
    pid = stage.agent_pid()
    guest.must(f"sleep {_WATCHDOG_S + 3}")
    assert stage.agent_pid() == pid, "the watchdog bit although nothing hung"
    guest.must(f"kill -STOP {pid}")
    stage.wait_for_restart(pid)
    stage.wait_for_log("Watchdog timeout")
    guest.must(f"rm {short} && systemctl daemon-reload")
    yield f"stopped by SIGSTOP: the watchdog (here {_WATCHDOG_S} s) ended it and started another"


def reload(stage: Stage) -> Iterator[str]:
    pid = stage.agent_pid()
    stage.guest.must(f"systemctl reload {AGENT}")
    stage.wait_for_log("the config was reloaded")
    assert stage.agent_pid() == pid
    yield "`systemctl reload`: the same process has read its file again"


def stop(stage: Stage) -> Iterator[str]:
    stage.guest.must(f"systemctl stop {AGENT}")
    shown = stage.guest.show(AGENT, "ActiveState", "Result", "ExecMainCode", "ExecMainStatus")
    clean = {"ActiveState": "inactive", "Result": "success", "ExecMainCode": "1"}
    assert shown == {**clean, "ExecMainStatus": "0"}, shown
    yield "`systemctl stop`: it ended by itself with code 0"
