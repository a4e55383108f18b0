"""Kills, hangs, reloads and stops the agent; systemd must do what the unit file says."""

from collections.abc import Iterator

from tools.systemd.context import AGENT, DROP_INS, PATIENCE_S, Context
from tools.systemd.json_lines import wait_until

_LOG = "/var/lib/fairwarning/actions.log"
_FREEZE_S = "5s"
_WATCHDOG_S = 5
"""The watchdog's time here, because the minute of the unit file is long to wait for."""


def kill_while_drained(context: Context) -> Iterator[str]:
    """Kills the agent between the drain and its undo, and then freezes the machine."""
    id = context.server.schedule("Freeze", duration=_FREEZE_S)
    order = context.server.driver.next(PATIENCE_S)
    assert context.server.event(id)["approvals"], "the freeze began without the agent's approval"
    _expect_log(context, [f"drained by {AGENT}"])
    assert context.guest.run("ls /etc/fairwarning/forbidden").code, "the agent could write to /etc"
    yield "as this user it ran a command, which could write to the state alone, and approved"
    pid = context.agent_pid()
    with order:
        context.guest.must(f"kill -KILL {pid}")
        context.wait_for_restart(pid)
        context.machine.freeze(order.duration_s)
    context.server.wait_until_over(id)
    _expect_log(context, [f"drained by {AGENT}", f"put back by {AGENT}"])
    yield "kill -9 while drained: systemd started it again, and after the freeze it put all back"


def _expect_log(context: Context, wanted: list[str]) -> None:
    def is_so() -> bool:
        return context.guest.run(f"cat {_LOG}").output.splitlines() == wanted

    wait_until(f"the command has written {wanted}", is_so, PATIENCE_S)


def hang(context: Context) -> Iterator[str]:
    guest = context.guest
    shipped = guest.show(AGENT, "WatchdogUSec")["WatchdogUSec"]
    assert shipped == "1min", shipped
    short = f"{DROP_INS}/watchdog.conf"
    guest.must(f"mkdir -p {DROP_INS} && echo '[Service]\nWatchdogSec={_WATCHDOG_S}' > {short}")
    guest.must("systemctl daemon-reload")
    context.restart()
    pid = context.agent_pid()
    guest.must(f"sleep {_WATCHDOG_S + 3}")
    assert context.agent_pid() == pid, "the watchdog bit although nothing hung"
    guest.must(f"kill -STOP {pid}")
    context.wait_for_restart(pid)
    context.wait_for_log("Watchdog timeout")
    guest.must(f"rm {short} && systemctl daemon-reload")
    yield f"stopped by SIGSTOP: the watchdog (here {_WATCHDOG_S} s) ended it and started another"


def reload(context: Context) -> Iterator[str]:
    pid = context.agent_pid()
    context.guest.must(f"systemctl reload {AGENT}")
    context.wait_for_log("the config was reloaded")
    assert context.agent_pid() == pid
    yield "`systemctl reload`: the same process has read its file again"


def stop(context: Context) -> Iterator[str]:
    context.guest.must(f"systemctl stop {AGENT}")
    shown = context.guest.show(AGENT, "ActiveState", "Result", "ExecMainCode", "ExecMainStatus")
    clean = {"ActiveState": "inactive", "Result": "success", "ExecMainCode": "1"}
    assert shown == {**clean, "ExecMainStatus": "0"}, shown
    yield "`systemctl stop`: it ended by itself with code 0"
