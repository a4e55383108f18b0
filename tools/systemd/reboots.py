"""Checks that a unit is stopped for a real reboot, and runs again after it."""

from collections.abc import Callable, Iterator

from tools.systemd.context import AGENT, BROUGHT, PATIENCE_S, WORKER, Context

_RULES = "/etc/polkit-1/rules.d"


def refuse_without_rights(context: Context) -> Iterator[str]:
    """Checks that the agent, which as shipped may not stop units, says so and does not approve."""
    id = context.server.schedule("Reboot")
    why = context.wait_for_log("failed: ")
    event = context.server.event(id)
    assert event["phase"] == "scheduled", event
    assert not event["approvals"], "a failed drain was approved"
    assert context.guest.state_of(WORKER) == "active"
    context.server.cancel(id)
    context.wait_for_log("all is done and undone")
    assert context.guest.state_of(WORKER) == "active"
    yield f"without the right to stop units it does not approve, and says: {_reason(why)}"


def reboot_with_polkit(context: Context) -> Iterator[str]:
    """Sets it up as in deploy/README.md: a lasting user whom polkit lets stop units."""
    guest = context.guest
    guest.must(f"systemctl stop {AGENT} && useradd --system --shell /usr/sbin/nologin {AGENT}")
    guest.must(f"install -m 0644 {BROUGHT}/deploy/fairwarning-agent.rules -t {_RULES}")
    guest.must(f"systemctl start {AGENT}")
    other = guest.run(
        f"setpriv --reuid=nobody --clear-groups systemctl --no-ask-password stop {WORKER}"
    )
    assert other.code, "the polkit rule lets anybody stop the unit"
    yield from _reboot(
        context, context.machine.reboot, "with the polkit rule", "`systemctl reboot`"
    )
    assert context.agent_user() == AGENT


def reboot_as_root(context: Context) -> Iterator[str]:
    context.add_drop_in("deploy/root.conf")
    context.add_drop_in("deploy/json.conf")
    context.restart()
    assert context.agent_user() == "root"
    plug = context.machine.pull_the_plug
    yield from _reboot(context, plug, "with root.conf", "the plug was pulled")


def _reboot(context: Context, impact: Callable[[], None], how: str, what: str) -> Iterator[str]:
    guest, server = context.guest, context.server
    before = _boot_id(context)
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
    took_s = context.machine.wait_until_up()
    assert _boot_id(context) != before, "the machine did not reboot"
    context.wait_for_worker("active")
    context.wait_for_log("all is done and undone")
    yield f"{how}: {what}, up after {took_s:.0f} s, the agent came back and started the unit"


def _boot_id(context: Context) -> str:
    return context.guest.must("cat /proc/sys/kernel/random/boot_id")


def _reason(line: str) -> str:
    return line.partition("failed: ")[2]
