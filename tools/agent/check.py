"""Checks the agent and the client beside real programs, each in a network of its own.

    python3 tools/agent/check.py --install       gets the Debian packages that are missing
    python3 tools/agent/check.py                 one line a check; exit code 1 if one fails

Everything happens in network namespaces that are made for the run: nothing is ever sent to
169.254.169.254 outside them. Needs no root (`--install` and `slurm` do).
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.agent.packages import NEEDS
from tools.suite_check import run_suite

CHECKS = {
    "dhcp": "tools.agent.dhcp:check_dhcp",
    "unit": "tools.agent.unit:check_unit",
    "handler_check": "tools.agent.handler_check:check_handler",
    "kubectl": "tools.agent.kubectl:check_kubectl",
    "patroni": "tools.agent.patroni:check_patroni",
    "host_shutdown": "tools.agent.host_shutdown:check_host_shutdown",
    "rollout": "tools.agent.rollout:check_rollout",
    "rabbitmq": "tools.agent.recipes.rabbitmq:check_rabbitmq",
    "redis": "tools.agent.recipes.redis:check_redis",
    "slurm": "tools.agent.recipes.slurm:check_slurm",
}

if __name__ == "__main__":
    sys.exit(run_suite("Check the agent beside real programs.", NEEDS, CHECKS))
