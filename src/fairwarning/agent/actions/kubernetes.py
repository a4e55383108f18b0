"""Cordons and drains a node with kubectl. If somebody else cordoned it, the undo does nothing."""

import logging
from time import monotonic

from fairwarning.agent.actions.base import ActionFailed, Context, settings_of
from fairwarning.agent.actions.processes import complaint, run
from fairwarning.agent.config.model import Action, Kubernetes, Phase

CORDONED_BY = "cordoned_by"
US, OTHERS = "us", "others"
DRAIN_MARGIN_S = 2.0
"""kubectl gives up so long before it would be killed, so that it can name the pods that are left.
While a disruption budget blocks kubectl, it checks only every five seconds and may still be
killed."""
SAID_CHARS_MAX = 2_000  # Enough for kubectl to name the pods that are left.

_log = logging.getLogger(__name__)


class KubernetesHandler:
    async def do(self, action: Action, context: Context) -> None:
        began_s = monotonic()
        settings = settings_of(action, Kubernetes)
        node = node_name(settings, context)
        found = await _kubectl(settings, look_arguments(node), context)
        if not found.strip():
            raise ActionFailed(f"the cluster has no node {node}; set `node` to its name there")
        if CORDONED_BY not in (context.kept or {}):
            context.keep(CORDONED_BY, OTHERS if is_cordoned(found) else US)
        await _kubectl(settings, ["cordon", "--", node], context)
        if settings.drain:
            left_s = drain_s(action.timeout_s, context) - (monotonic() - began_s)
            await _kubectl(settings, drain_arguments(settings, node, left_s), context)

    async def undo(self, action: Action, context: Context) -> None:
        settings = settings_of(action, Kubernetes)
        if (context.kept or {}).get(CORDONED_BY) != US:
            return
        node = node_name(settings, context)
        if not (await _kubectl(settings, look_arguments(node), context)).strip():
            _log.info("the cluster has no node %s any more, so there is nothing to uncordon", node)
            return
        await _kubectl(settings, ["uncordon", "--", node], context)


def node_name(settings: Kubernetes, context: Context) -> str:
    """Return the node's name in lower case, as Kubernetes needs it. A VM may be called Web-1."""
    return context.render(settings.node).lower()


def look_arguments(node: str) -> list[str]:
    wanted = "jsonpath={.metadata.name} {.spec.unschedulable}"
    return ["get", "node", "--ignore-not-found", f"--output={wanted}", "--", node]


def is_cordoned(found: str) -> bool:
    return found.split()[1:] == ["true"]


def drain_s(timeout_s: float, context: Context) -> float:
    """Return how long a drain may take. In the phase SCHEDULED, the time left is a limit, too."""
    if context.phase is Phase.SCHEDULED:
        return min(timeout_s, context.time_left_s)
    return timeout_s


def drain_arguments(settings: Kubernetes, node: str, left_s: float) -> list[str]:
    chosen = {
        "ignore-daemonsets": settings.ignore_daemonsets,
        "delete-emptydir-data": settings.delete_emptydir_data,
        "force": settings.force,
    }
    arguments = ["drain", *(f"--{name}" for name, is_set in chosen.items() if is_set)]
    arguments.append(f"--timeout={max(1, int(left_s - DRAIN_MARGIN_S))}s")
    if settings.grace_period_s is not None:
        arguments.append(f"--grace-period={settings.grace_period_s}")
    if settings.pod_selector:
        arguments.append(f"--pod-selector={settings.pod_selector}")
    return [*arguments, "--", node]


def cluster_arguments(settings: Kubernetes) -> list[str]:
    named = {"kubeconfig": settings.kubeconfig, "context": settings.context}
    return [f"--{name}={value}" for name, value in named.items() if value]


async def _kubectl(settings: Kubernetes, arguments: list[str], context: Context) -> str:
    argv = [settings.kubectl, *cluster_arguments(settings), *arguments]
    finished = await run(argv, environment=context.environment)
    if finished.code != 0:
        if finished.said != finished.last_line:
            # The error shows the last line, which names the pod that is left. The others say why.
            _log.warning("kubectl said: %s", finished.said[-SAID_CHARS_MAX:])
        raise ActionFailed(complaint(argv[0], finished))
    return finished.output
