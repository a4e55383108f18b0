"""Checks the agent and the client beside real programs, each in a network of its own.

    python3 tools/agent/check.py --install       gets the Debian packages that are missing
    python3 tools/agent/check.py                 one line a check; exit code 1 if one fails

Everything happens in network namespaces that are made for the run: nothing is ever sent to
169.254.169.254 outside them. Needs no root (`--install` and `slurm` do).
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.namespaces import NoNamespaces
from tools.agent.packages import NEEDS
from tools.suite_check import passes

_BAD_USAGE = 2


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the agent beside real programs.")
    parser.add_argument("--install", action="store_true", help="first install what is missing")
    every = (
        "dhcp, unit, handler_check, kubectl, patroni, host_shutdown, rollout, rabbitmq, redis, "
        "slurm; all without it"
    )
    parser.add_argument("only", nargs="*", help=every)
    options = parser.parse_args()
    if options.install:
        NEEDS.install()
    for line in (lines := NEEDS.missing()):
        print(line, file=sys.stderr)
    if lines:
        return _BAD_USAGE
    # Only now: they need what was just found to be there.
    from tools.agent.dhcp import check_dhcp  # noqa: PLC0415
    from tools.agent.handler_check import check_handler  # noqa: PLC0415
    from tools.agent.host_shutdown import check_host_shutdown  # noqa: PLC0415
    from tools.agent.kubectl import check_kubectl  # noqa: PLC0415
    from tools.agent.patroni import check_patroni  # noqa: PLC0415
    from tools.agent.recipes.rabbitmq import check_rabbitmq  # noqa: PLC0415
    from tools.agent.recipes.redis import check_redis  # noqa: PLC0415
    from tools.agent.recipes.slurm import check_slurm  # noqa: PLC0415
    from tools.agent.rollout import check_rollout  # noqa: PLC0415
    from tools.agent.unit import check_unit  # noqa: PLC0415

    checks = {
        "dhcp": check_dhcp,
        "unit": check_unit,
        "handler_check": check_handler,
        "kubectl": check_kubectl,
        "patroni": check_patroni,
        "host_shutdown": check_host_shutdown,
        "rollout": check_rollout,
        "rabbitmq": check_rabbitmq,
        "redis": check_redis,
        "slurm": check_slurm,
    }
    if unknown := [name for name in options.only if name not in checks]:
        parser.error(f"no check is called {', '.join(unknown)}")
    chosen = {name: each for name, each in checks.items() if name in (options.only or checks)}
    try:
        failed = [name for name, each in chosen.items() if not passes(name, each)]
    except NoNamespaces as obstacle:
        print(obstacle, file=sys.stderr)
        return _BAD_USAGE
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
