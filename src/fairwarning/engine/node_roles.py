"""The roles that a node may have. Nodes with different roles share one PostgreSQL.

Every node keeps the documents in memory, because it needs them to notice that the store has stepped
back. A role says what else the node does.
"""

from enum import StrEnum


class NodeRole(StrEnum):
    METADATA = "metadata"
    """The node answers instances. It stores their approvals, and starts nothing itself."""
    ENGINE = "engine"
    """The node starts what is due, calls drivers, runs rollouts and sends notifications."""
    CONTROL = "control"
    """The node serves the operator API, the portal and the API for Azure's clients."""


NodeRoles = frozenset[NodeRole]
ALL_ROLES: NodeRoles = frozenset(NodeRole)


class RolesNeedPostgres(Exception):
    def __init__(self) -> None:
        super().__init__(
            "only nodes that share a PostgreSQL can divide the roles; leave --role out, or use "
            "--store postgresql://USER@HOST/DATABASE"
        )
