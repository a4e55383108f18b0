"""The network between the nodes and the database, and the ways to cut it.

Everything runs in one new network namespace. Each node reaches the database at a loopback address
of its own, so nftables can tell the nodes apart, and the two directions too. A packet is dropped
where it would be received, so its sender notices nothing, as when a cable is cut.
"""

import subprocess
from collections.abc import Iterable
from enum import StrEnum

from tools.debian_packages import program

_TABLE = "cuts"


class Cut(StrEnum):
    """What happens to packets between a node and the database."""

    RESET = "connections are reset"
    BOTH = "packets are lost"
    TO_DATABASE = "packets to the database are lost"
    FROM_DATABASE = "packets from the database are lost"


def set_up() -> None:
    """Prepares the new namespace."""
    subprocess.run([program("ip"), "link", "set", "lo", "up"], check=True)  # noqa: S603
    _nft(
        f"add table ip {_TABLE}",
        f"add chain ip {_TABLE} input {{ type filter hook input priority 0; policy accept; }}",
    )


def database_address(node: int) -> str:
    """Returns the address at which this node reaches the database."""
    return f"127.0.1.{node}"


def cut(nodes: Iterable[int], how: Cut) -> None:
    """Cuts these nodes off the database, until `mend`."""
    for node in nodes:
        address = database_address(node)
        verdict = "reject with tcp reset" if how is Cut.RESET else "drop"
        if how is not Cut.FROM_DATABASE:
            _nft(f"add rule ip {_TABLE} input ip protocol tcp ip daddr {address} {verdict}")
        if how is not Cut.TO_DATABASE:
            _nft(f"add rule ip {_TABLE} input ip protocol tcp ip saddr {address} {verdict}")


def mend() -> None:
    """Lets all packets through again."""
    _nft(f"flush chain ip {_TABLE} input")


def _nft(*lines: str) -> None:
    text = "\n".join(lines)
    subprocess.run([program("nft"), "-f", "-"], input=text, text=True, check=True)  # noqa: S603
