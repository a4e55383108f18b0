"""Checks that a unit is stopped for a real reboot, and runs again after it."""

from collections.abc import Callable, Iterator

from tools.systemd.context import AGENT, BROUGHT, PATIENCE_S, WORKER, Context

_RULES = "/etc/polkit-1/rules.d"
_LOGIND = "/etc/systemd/logind.conf.d"
_CONFIG = "/etc/fairwarning/agent.toml"
_IN_ORDER = (
    "the host shuts down, and waits 5 min at most",
    "done: systemd stop worker.service",
    "nothing is left to drain, so the shutdown goes on",
    f"Stopped {AGENT}.service",
)
"""What the journal of a boot says that ends with a drain."""


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


def shut_down_by_itself(context: Context) -> Iterator[str]:
    """Reboots the machine with no event at all: the shutdown must wait for the drain."""
    guest = context.guest
    guest.must(f"install -D -m 0644 {BROUGHT}/deploy/fairwarning-logind.conf -t {_LOGIND}")
    guest.must("systemctl kill -s HUP systemd-logind")
    guest.must(f"printf '\\n[host_shutdown]\\ndelay = true\\n' >> {_CONFIG}")
    context.restart()
    waits = context.wait_for_log("a shutdown of the host waits for the drain, at most 5 min")
    assert "Fairwarning agent" in guest.must("systemd-inhibit --list --no-pager")
    yield f"with the delay lock, as the user {context.agent_user()}: {waits}"
    before = _boot_id(context)
    context.machine.reboot()
    context.machine.wait_until_up()
    assert _boot_id(context) != before, "the machine did not reboot"
    log = guest.must("journalctl --boot=-1 --no-pager --output=cat | tail -n 400").splitlines()
    places = [_place(log, words) for words in _IN_ORDER]
    assert places == sorted(places), f"not in the order {_IN_ORDER}: {log}"
    yield "`systemctl reboot` without an event: the unit was stopped, then the host shut down"
    context.wait_for_worker("active")
    context.wait_for_log("all is done and undone")
    yield "after that boot the agent started the unit again"


def _place(log: list[str], words: str) -> int:
    found = next((place for place, line in enumerate(log) if words in line), None)
    assert found is not None, f"the journal of the boot before lacks {words!r}: {log[-40:]}"
    return found


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
