"""Checks the SDK for JavaScript, an old SDK for Python, and Ansible."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from tools.azure_cli.az import Client, Report, require
from tools.azure_cli.server import Server

_HERE = Path(__file__).parent
_THREE = ["0", "1", "2"]
Check = Callable[[Path, Server, Report], None]
"""Runs a client in a folder of its own against a fresh server."""


def checks(programs: Mapping[str, Path]) -> dict[str, Check]:
    """Returns the checks of the clients whose folders are given."""
    known: dict[str, Callable[[Path], Check]] = {
        "javascript": check_javascript,
        "python_2020": check_python_2020,
        "ansible": check_ansible,
    }
    return {name: known[name](folder) for name, folder in programs.items()}


def check_javascript(installed: Path) -> Check:
    def check(folder: Path, server: Server, report: Report) -> None:
        # Node.js looks for modules beside the script that imports them.
        script = shutil.copy(_HERE / "javascript" / "scale_sets.mjs", folder)
        (folder / "node_modules").symlink_to(installed / "node_modules")
        command = [str(installed / "bin" / "node"), str(script)]
        play_scale_set(Client(command, "node scale_sets.mjs", folder, server, report))

    return check


def check_python_2020(installed: Path) -> Check:
    def check(folder: Path, server: Server, report: Report) -> None:
        script = _HERE / "python_2020" / "scale_sets.py"
        command = [str(installed / "bin" / "python"), "-W", "ignore", str(script)]
        play_scale_set(Client(command, "python_2020 scale_sets.py", folder, server, report))

    return check


def play_scale_set(client: Client) -> None:
    """Runs each command of a script that uses an SDK. All scripts have the same commands."""
    client.set_up()
    server = client.server
    require(client("login") == [], "there is no group yet")
    client("login", str(server.azure()["tenant"]))
    made = client.flowing("create")
    wanted = {"state": "Succeeded", "capacity": 3, "enable": True, "notice": "PT5M"}
    require(made == wanted, f"the set is {wanted}, not {made}")
    require(client("list") == _THREE, "three instances were made")
    server.document("pool_0")
    with client.waiting("delete", "1"):
        event = server.wait_for_event("pool_1")
        require(event["EventType"] == "Terminate", f"the instance was warned: {event}")
        server.approve("pool_1", event["EventId"])
    require(client("list") == ["0", "2"], "the instance is gone")
    with client.waiting("restart", "0"):
        event = server.wait_for_event("pool_0")
        require(event["EventType"] == "Reboot", f"the instance was warned: {event}")
        server.approve("pool_0", event["EventId"])
    client.environment |= {"AZURE_CLIENT_SECRET": "fw_wrong"}
    client.refused("list", says="AADSTS7000215")


def check_ansible(installed: Path) -> Check:
    def check(folder: Path, server: Server, report: Report) -> None:
        command = [str(installed / "bin" / "ansible-playbook")]
        client = Client(command, "ansible-playbook", folder, server, report)
        client.environment |= {
            "ANSIBLE_COLLECTIONS_PATH": str(installed),
            "ANSIBLE_HOME": str(folder / "ansible"),
            "ANSIBLE_LOCAL_TEMP": str(folder / "ansible" / "local"),
            "ANSIBLE_REMOTE_TEMP": str(folder / "ansible" / "remote"),
            "ANSIBLE_LOCALHOST_WARNING": "False",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
            "PYTHONWARNINGS": "ignore",
        }
        play_ansible(client)

    return check


def play_ansible(client: Client) -> None:
    client.set_up()
    server = client.server
    with server.time_flowing():
        client.does(_path("create"))
    client.does(_path("read"))
    require(server.scope_of("pool")["terminateNotice"] == "PT5M", "the notice of Terminate is PT5M")
    server.document("pool_0")
    with client.waiting(_path("delete")):
        event = server.wait_for_event("pool_1")
        require(event["EventType"] == "Terminate", f"the instance was warned: {event}")
        server.approve("pool_1", event["EventId"])
    # The playbook does not always wait until the instance is gone.
    with server.time_flowing():
        server.wait_until_quiet("pool_0")
    require("pool_1" not in server.instances(), "the instance is gone")
    server.document("web-0")
    with client.waiting(_path("restart")):
        event = server.wait_for_event("web-0")
        require(event["EventType"] == "Reboot", f"the instance was warned: {event}")
        server.approve("web-0", event["EventId"])


def _path(name: str) -> str:
    return str(_HERE / "ansible" / f"{name}.yml")
