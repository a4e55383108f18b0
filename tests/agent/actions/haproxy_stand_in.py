"""A runtime socket that answers as HAProxy 2.6 does; the words were recorded from a real one."""

import asyncio
from collections.abc import Callable
from pathlib import Path

COLUMNS = (
    "be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight "
    "srv_time_since_last_change srv_check_status srv_check_result srv_check_health "
    "srv_check_state srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn srv_port srvrecord "
    "srv_use_ssl srv_check_port srv_check_addr srv_agent_addr srv_agent_port"
)
STAT_COLUMNS = "pxname,svname,qcur,qmax,scur,smax,slim,stot,status"
ADMIN = {"ready": 0, "maint": 1, "drain": 8}


class StandIn:
    """Backend `web` with the servers `a` and `b`."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.states = {"a": "ready", "b": "ready"}
        self.sessions = [0]
        """How many `a` has, at each look; the last one stays."""
        self.commands: list[str] = []
        self.looked = asyncio.Event()
        """Set by the first look at the sessions."""
        self.is_operator = False
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> "StandIn":
        self._server = await asyncio.start_unix_server(self._serve, self.path)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        command = (await reader.readline()).decode().rstrip("\n")
        self.commands.append(command)
        writer.write(self._answer(command).encode())
        await writer.drain()
        writer.close()

    def _answer(self, command: str) -> str:
        answers: dict[str, Callable[[list[str]], str]] = {
            "show servers state": self._show_state,
            "show stat": self._show_stat,
            "set server": self._set,
            "shutdown sessions server": self._shut,
        }
        for start, answer in answers.items():
            if command.startswith(f"{start} "):
                return answer(command.removeprefix(f"{start} ").split())
        return "Unknown command, but maybe one of the following ones is a better match:\n\n"

    def _show_state(self, words: list[str]) -> str:
        if words != ["web"]:
            return "Can't find backend.\n\n"
        rows = [
            f"3 web {number} {name} 127.0.0.1 2 {ADMIN[state]} 1 1 0 1 0 2 0 0 0 0 - 80 - 0 0 - - 0"
            for number, (name, state) in enumerate(self.states.items(), 1)
        ]
        return "\n".join(["1", f"# {COLUMNS}", *rows]) + "\n\n"

    def _show_stat(self, words: list[str]) -> str:
        if words != ["web", "4", "-1"]:
            return "No such proxy.\n\n"
        self.looked.set()
        now = self.sessions[0] if len(self.sessions) == 1 else self.sessions.pop(0)
        rows = [f"web,a,0,0,{now},9,,9,DRAIN", "web,b,0,0,7,9,,9,no check"]
        return "\n".join([f"# {STAT_COLUMNS}", *rows]) + "\n\n"

    def _set(self, words: list[str]) -> str:
        if self.is_operator:
            return "Permission denied\n\n"
        backend, _, name = words[0].partition("/")
        if backend != "web":
            return "No such backend.\n\n"
        if name not in self.states:
            return "No such server.\n\n"
        self.states[name] = words[2]
        return "\n"

    def _shut(self, words: list[str]) -> str:
        self.sessions = [0]
        return "\n"
