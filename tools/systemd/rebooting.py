"""A unit is stopped for a reboot, the machine really reboots, and the unit runs again."""

from collections.abc import Callable, Iterator

from tools.systemd.stage import AGENT, BROUGHT, PATIENCE_S, WORKER, Stage

_RULES = "/etc/polkit-1/rules.d"


def refuse_without_rights(stage: Stage) -> Iterator[str]:
    """As shipped the agent may not stop units; then it must say so, and not approve."""
    id = stage.server.schedule("Reboot")
    why = stage.wait_for_log("failed: ")
    event = stage.server.event(id)
    assert event["phase"] == "scheduled", event
    assert not event["approvals"], "a failed drain was approved"
    assert stage.guest.state_of(WORKER) == "active"
    stage.server.cancel(id)
    stage.wait_for_log("all is done and undone")
    assert stage.guest.state_of(WORKER) == "active"
    yield f"without the right to stop units it does not approve, and says: {_reason(why)}"


def reboot_with_polkit(stage: Stage) -> Iterator[str]:
    """As deploy/README.md says: the user becomes a lasting one, and polkit lets it stop units."""
    guest = stage.guest
    guest.must(f"systemctl stop {AGENT} && useradd --system --shell /usr/sbin/nologin {AGENT}")
    guest.must(f"install -m 0644 {BROUGHT}/deploy/fairwarning-agent.rules -t {_RULES}")
    guest.must(f"systemctl start {AGENT}")
    other = guest.run(
        f"setpriv --reuid=nobody --clear-groups systemctl --no-ask-password stop {WORKER}"
    )
    assert other.code, "the polkit rule lets anybody stop the unit"
    yield from _reboot(stage, stage.machine.reboot, "with the polkit rule", "`systemctl reboot`")
    assert stage.agent_user() == AGENT


def reboot_as_root(stage: Stage) -> Iterator[str]:
    stage.add_drop_in("deploy/root.conf")
    stage.add_drop_in("deploy/json.conf")
    stage.restart()
    assert stage.agent_user() == "root"
    plug = stage.machine.pull_the_plug
    yield from _reboot(stage, plug, "with root.conf", "the plug was pulled")


def _reboot(stage: Stage, impact: Callable[[], None], how: str, what: str) -> Iterator[str]:
    guest, server = stage.guest, stage.server
    before = _boot_id(stage)
    assert guest.state_of(WORKER) == "active"
    id = server.schedule("Reboot")
    order = server.driver.next(PATIENCE_S)
    assert order.type == "Reboot"
    assert guest.state_of(WORKER) == "inactive", "the reboot began, and the unit still ran"
    assert server.event(id)["approvals"], "the reboot began without the agent's approval"
    yield f"{how}: the unit was stopped, and then the reboot approved"
    with order:
        impact()
    # Over before the machine is up, so only its disk can tell the agent what it owes.
    server.wait_until_over(id)
    took_s = stage.machine.wait_until_up()
    assert _boot_id(stage) != before, "the machine did not reboot"
    stage.wait_for_worker("active")
    stage.wait_for_log("all is done and undone")
    yield f"{how}: {what}, up after {took_s:.0f} s, the agent came back and started the unit"


def _boot_id(stage: Stage) -> str:
    return stage.guest.must("cat /proc/sys/kernel/random/boot_id")


def _reason(line: str) -> str:
    return line.partition("failed: ")[2]
