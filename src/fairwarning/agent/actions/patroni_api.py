"""Asks the REST API of the local Patroni, and reads its answers."""

import asyncio
import json
import ssl
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import h11

from fairwarning.agent.actions.base import ActionFailed, reason
from fairwarning.agent.actions.http import Answer, Outgoing, basic, exchange
from fairwarning.agent.config.model import Patroni
from fairwarning.common.text_files import read_text

ASK_S_MAX = 10.0  # Patroni answers from memory, or asks its store, which has its own time-outs.
LEADER, NO_LEADER = 200, 503
_LEADERS = ("leader", "standby_leader")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    name: str
    role: str
    state: str
    timeline: int | None = None

    @property
    def is_leader(self) -> bool:
        return self.role in _LEADERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    members: tuple[Member, ...]
    is_paused: bool = False

    @property
    def leader(self) -> Member | None:
        return next((each for each in self.members if each.is_leader), None)

    def member(self, name: str) -> Member | None:
        return next((each for each in self.members if each.name == name), None)


class PatroniApi:
    """The API at `url`. Every method raises ActionFailed if there is no usable answer."""

    def __init__(self, settings: Patroni) -> None:
        self._settings = settings
        self._parts = urlsplit(settings.url)

    async def is_leader(self) -> bool:
        """Return whether the local member holds the leader's lock."""
        answer = await self._ask("GET", "/leader", ASK_S_MAX)
        if answer.status not in (LEADER, NO_LEADER):
            raise ActionFailed(f"{self._shown}/leader answered {answer.status}; is it Patroni?")
        return answer.status == LEADER

    async def cluster(self) -> Cluster:
        answer = await self._ask("GET", "/cluster", ASK_S_MAX)
        if answer.status != 200:
            raise ActionFailed(f"{self._shown}/cluster answered {answer.status}: {said(answer)}")
        return read_cluster(answer.body)

    async def switch_over(self, leader: str, candidate: str, time_s: float) -> Answer:
        """Ask for a switchover. Patroni answers when it is done, has failed or takes long."""
        wanted = {"leader": leader} | ({"candidate": candidate} if candidate else {})
        return await self._ask("POST", "/switchover", time_s, json.dumps(wanted).encode())

    async def try_credentials(self) -> Answer:
        """Ask for a switchover from nobody, which Patroni refuses after it has checked the rights:
        with 400 if the credentials are right.
        """
        return await self._ask("POST", "/switchover", ASK_S_MAX, b'{"leader": ""}')

    @property
    def _shown(self) -> str:
        return f"Patroni's API {self._settings.url.rstrip('/')}"

    async def _ask(self, method: str, path: str, time_s: float, body: bytes = b"") -> Answer:
        headers = {"Host": self._parts.netloc, "User-Agent": "fairwarning"}
        if body:
            headers["Content-Type"] = "application/json"
            headers |= _authorization(self._settings)
        target = self._parts.path.rstrip("/") + path
        outgoing = Outgoing(method=method, target=target, headers=headers, body=body)
        try:
            async with asyncio.timeout(time_s):
                return await exchange(await self._connect(), outgoing)
        except TimeoutError:
            raise ActionFailed(f"{self._shown} did not answer within {time_s:.0f} s") from None
        except ssl.SSLCertVerificationError as problem:
            why = f"{problem.verify_message}; set `ca_file`"
            raise ActionFailed(f"{self._shown} is not trusted: {why}") from None
        except ssl.SSLError as problem:
            why = f"{problem.reason or problem}; see `cert_file`, and http or https in `url`"
            raise ActionFailed(f"{self._shown} ends the connection: {why}") from None
        except OSError as problem:
            why = f"{reason(problem)}; is Patroni running here?"
            raise ActionFailed(f"{self._shown} cannot be reached: {why}") from None
        except h11.ProtocolError:
            raise ActionFailed(f"{self._shown} gave no answer in HTTP") from None

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        tls = _tls(self._settings) if self._parts.scheme == "https" else None
        port = self._parts.port or (443 if tls else 80)
        return await asyncio.open_connection(self._parts.hostname, port, ssl=tls)


def read_cluster(body: bytes) -> Cluster:
    """Read the document of GET /cluster. Raises ActionFailed if it is another document."""
    try:
        raw = json.loads(body)
        return Cluster(
            members=tuple(_member(each) for each in raw["members"]),
            is_paused=raw.get("pause") is True,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ActionFailed("Patroni's /cluster is no list of members") from None


def said(answer: Answer) -> str:
    """Return the first line of what Patroni said."""
    lines = answer.body.decode(errors="replace").strip().splitlines()
    return lines[0][:300] if lines else "nothing"


def _member(raw: dict[str, Any]) -> Member:
    timeline = raw.get("timeline")
    return Member(
        name=raw["name"],
        role=raw["role"],
        state=raw.get("state", "unknown"),
        timeline=timeline if isinstance(timeline, int) else None,
    )


def _authorization(settings: Patroni) -> dict[str, str]:
    if not settings.user:
        return {}
    password = settings.password
    if settings.password_file:
        try:
            password = read_text(settings.password_file).strip()
        except OSError as problem:
            why = f"{settings.password_file} cannot be read: {problem.strerror}"
            raise ActionFailed(f"the password_file {why}") from None
    return {"Authorization": basic(quote(settings.user), quote(password))}


def _tls(settings: Patroni) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.ca_file or None)
        if settings.cert_file:
            context.load_cert_chain(settings.cert_file, settings.key_file or None, lambda: "")
    except (OSError, ValueError) as problem:
        why = reason(problem) if isinstance(problem, OSError) else str(problem)
        raise ActionFailed(f"the files for https cannot be used: {why}") from None
    return context
