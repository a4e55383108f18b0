"""Makes the shape of a world and the list of its steps from a seed.

Every step has its own seed for random choices. So a step does the same if other steps are left out,
and a plan that fails can be made shorter by deleting steps.
"""

from dataclasses import dataclass
from random import Random

from fairwarning.core import resources
from fairwarning.core.instants import MINUTE_MS, SECOND_MS
from fairwarning.core.model import EventType, EvictionPolicy, Policy, Priority
from fairwarning.core.resources import Resource

STEP_SEED_MAX = 2**32  # Any seed of a step fits into 32 bits.
STEPS = 220  # Long enough that an event is announced, started and ended several times.


@dataclass(frozen=True, slots=True)
class Step:
    kind: str
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The random properties of a world, which are chosen before the first step."""

    nodes: int
    is_shared: bool
    """Whether other nodes may write to the store. Then a signal may be lost, so readers poll."""
    commits_in_loop: bool
    """Whether SQLite may commit in the event loop."""
    resources: tuple[Resource, ...]
    operations_pending_max: int
    signal_loss: float
    has_late_signals: bool
    """Whether signals wait for a step that delivers them. Otherwise they come at once."""
    has_clients: bool
    has_rollouts: bool
    targets: int
    """How many targets of notifications there are."""
    readers: int
    """How many readers of the change feed each node has."""
    all_come_back: bool
    """Whether all nodes that are down start again at the end. Otherwise only one node must run."""
    drivers_fail: bool
    """Whether drivers fail every time, so that events end as failed."""
    skews_ms: tuple[int, ...]
    weights: dict[str, int]


# How often each kind of step is taken, compared with the others.
USUAL_STEPS = {
    "schedule": 6, "operate": 6, "operate_all": 3, "scale_in": 4, "approve": 8, "cancel": 2,
    "postpone": 2, "happen": 1, "activate": 4, "power": 2, "model": 2, "upgrade": 1, "policy": 1,
    "add": 1, "declare": 4, "move_address": 2, "repeat": 3, "go_on": 30, "settle": 14, "deadline":
    12, "later": 3, "impact": 10,
}  # fmt: skip
LATE_STEPS = {"commit": 8, "let_go": 5, "batch": 6, "caller_leaves": 1}
FAULT_STEPS = {
    "fail": 5, "outage": 1, "fail_next": 3, "crash": 2, "stop": 1, "restart": 4, "clock_step": 1,
    "node_clock_step": 1, "impact_fails": 3, "answer_lost": 2, "stale_report": 2,
}  # fmt: skip
CLIENT_STEPS = {"poll": 14, "start_request": 3, "client_leaves": 2, "move_address": 10}
READER_STEPS = {"foreign_line": 1}
ROLLOUT_STEPS = {"rollout": 3, "decide_rollout": 2}
_SKEWS_MS = (0, 0, -1, 1, 700, -45_000)  # 45 s is more than a lease.
STEP_BACK_STEPS = {"back_up": 4, "step_back": 2}


def shape_of(seed: int, *, may_be_shared: bool = True, may_step_back: bool = True) -> Shape:
    """Returns the shape of a seed, without the features that the store does not have."""
    rng = Random(seed)
    nodes = rng.choice([1, 1, 2, 3])
    is_shared = nodes > 1 or rng.random() < 0.3
    faults = rng.choice([0, 1, 1, 2])
    # In a third of the worlds nothing comes late, so that all steps test the rules.
    is_plain = rng.random() < 0.33
    lateness = 0 if is_plain else rng.choice([0, 1, 1, 2])
    has_late_signals = not is_plain and rng.random() < 0.7
    has_clients = not is_plain and rng.random() < 0.7
    has_rollouts = not is_plain and rng.random() < 0.35
    targets = 0 if is_plain else rng.choice([0, 0, 0, 1, 2])
    readers = 0 if is_plain else rng.choice([0, 1, 2])
    # The store of a single node cannot step back while that node runs.
    steps_back = is_shared and has_clients and rng.random() < 0.5
    weights = {kind: max(1, round(w * rng.choice([0.5, 1, 2]))) for kind, w in USUAL_STEPS.items()}
    _add(weights, LATE_STEPS, lateness)
    _add(weights, FAULT_STEPS, faults)
    _add(weights, {"deliver": 12}, has_late_signals)
    _add(weights, CLIENT_STEPS, has_clients)
    _add(weights, READER_STEPS, readers)
    _add(weights, ROLLOUT_STEPS, has_rollouts)
    _add(weights, STEP_BACK_STEPS, steps_back and may_step_back)
    drivers_fail = faults > 0 and rng.random() < 0.15
    if drivers_fail:
        weights |= {"impact": 1, "impact_fails": 40, "later": 20}
    if not may_be_shared:
        nodes, is_shared = 1, False
    return Shape(
        nodes=nodes,
        is_shared=is_shared,
        commits_in_loop=rng.random() < 0.5,
        resources=tuple(_resource(rng, number) for number in range(rng.choice([1, 2, 3, 4]))),
        operations_pending_max=rng.choice([0, 1, 2, 10]),
        all_come_back=Random(f"end {seed}").random() < 0.5,
        drivers_fail=drivers_fail,
        signal_loss=rng.choice([0, 0, 0.1, 0.5]),
        has_late_signals=has_late_signals,
        has_clients=has_clients,
        has_rollouts=has_rollouts,
        targets=targets,
        readers=readers,
        skews_ms=tuple(rng.choice(_SKEWS_MS) if is_shared else 0 for _ in range(nodes)),
        weights=weights,
    )


def _add(weights: dict[str, int], more: dict[str, int], times: int) -> None:
    for kind, weight in more.items():
        weights[kind] = weights.get(kind, 0) + weight * times


def steps_of(seed: int, shape: Shape, number: int = STEPS) -> list[Step]:
    rng = Random(f"steps {seed}")
    kinds = [kind for kind, weight in shape.weights.items() if weight]
    weights = [shape.weights[kind] for kind in kinds]
    chosen = rng.choices(kinds, weights, k=number)
    return [Step(kind, rng.randrange(STEP_SEED_MAX)) for kind in chosen]


def _resource(rng: Random, number: int) -> Resource:
    place = resources.Place(subscription=rng.choice(["s1", "s2"]), test=rng.random() < 0.2)
    policy = Policy(
        approve_user_reboot=rng.random() < 0.2,
        approve_user_redeploy=rng.random() < 0.2,
        approve_all_instances_down=rng.random() < 0.7,
        notice_ms=rng.choice([{}, {}, {EventType.FREEZE: 20 * MINUTE_MS}]),
    )
    kind = rng.choice(["vm", "set", "scale", "scale", "cloud"])
    if kind == "vm":
        return resources.VirtualMachine(
            name=f"vm{number}",
            addresses=(f"10.0.{number}.1",),
            priority=rng.choice([Priority.REGULAR, Priority.SPOT]),
            eviction=rng.choice(list(EvictionPolicy)),
            policy=policy,
            place=place,
        )
    if kind == "set":
        members = tuple(resources.Member(name=f"web{number}-{n}") for n in range(rng.randint(1, 6)))
        domains = rng.randint(1, 3)
        return resources.AvailabilitySet(
            name=f"web{number}", members=members, update_domains=domains, policy=policy, place=place
        )
    if kind == "cloud":
        roles = {"FrontEnd": rng.randint(1, 3), "BackEnd": rng.randint(0, 2)}
        return resources.CloudService(name=f"shop{number}", roles=roles, policy=policy, place=place)
    spot = rng.random() < 0.25
    capacity = rng.randint(1, 5)
    notice_ms = rng.choice([5 * MINUTE_MS, 15 * MINUTE_MS, 5 * MINUTE_MS + 7 * SECOND_MS])
    return resources.ScaleSet(
        name=f"workers{number}",
        capacity=capacity,
        orchestration=rng.choice(list(resources.Orchestration)),
        suffixes=tuple(f"{n:08x}" for n in range(capacity)),
        addresses=tuple(f"10.0.{number}.{n + 1}" for n in range(capacity)),
        terminate_notice_ms=None if spot or rng.random() < 0.2 else notice_ms,
        priority=Priority.SPOT if spot else Priority.REGULAR,
        eviction=rng.choice(list(EvictionPolicy)),
        update_domains=rng.randint(1, 3),
        policy=policy,
        place=place,
    )
