"""Sends the requests of commands to the operator API, and raises `Problem` if it refuses one.

A POST carries an idempotency key unless `repeatable` is false. If the connection breaks, a GET or
a POST with a key is sent once more, so the user need not guess whether it took effect.
"""

import json
import socket
import ssl
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlsplit

import click
import httpx

from fairwarning import __version__
from fairwarning.common.command_errors import Disconnected, Problem

Json = dict[str, Any]
Param = str | int | bool | Sequence[str] | None

_CONNECT_S = 5.0  # A server that can be reached accepts within a round trip.
_ANSWER_S = 60.0  # A plan of a large fleet takes seconds; this leaves room for a busy server.
_ADVANCE_S = 600.0
"""The timeout for moving the clock. The server answers when all that became due has happened."""
_LARGE_S = 600.0
"""The timeout for the plan of a large fleet. After the plan, lines of progress follow."""
_SILENCE_S = 90.0
"""A stream that sent nothing for this many seconds is opened again. Its connection may be dead, as
after a laptop slept.
"""
_PAGE_MAX = 200  # Pages are joined, so this sets only the size of each answer.


class Api:
    def __init__(
        self, url: str, *, token: str = "", ca_file: str | None = None, answer_s: float = _ANSWER_S
    ) -> None:
        self.url = url.rstrip("/").removesuffix("/api/v1")
        self._has_token = bool(token)
        local = is_loopback(urlsplit(self.url).hostname or "")
        headers = {"User-Agent": f"fairwarning/{__version__}", "Accept": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._http = httpx.Client(
            headers=headers,
            timeout=httpx.Timeout(answer_s, connect=min(_CONNECT_S, answer_s)),
            verify=self._trust(ca_file, is_plain=local and self.url.startswith("http://")),
            trust_env=not local,
        )

    def close(self) -> None:
        self._http.close()

    def get(self, *path: str, **params: Param) -> Json:
        return self._ask("GET", path, params)

    def post(
        self, *path: str, body: Json | None = None, repeatable: bool = True, **params: Param
    ) -> Json:
        headers = {"Idempotency-Key": str(uuid.uuid4())} if repeatable else {}
        wait_s = _ADVANCE_S if path[0] == "clock" else _ANSWER_S
        return self._ask("POST", path, params, json=body, headers=headers, timeout=wait_s)

    def delete(self, *path: str, **params: Param) -> Json:
        return self._ask("DELETE", path, params)

    def send(
        self, method: str, *path: str, content: bytes, media_type: str, **params: Param
    ) -> Json:
        """Send `content` unchanged as the body, such as a fleet file."""
        headers = {"Content-Type": media_type}
        return self._ask(method, path, params, content=content, headers=headers)

    @contextmanager
    def send_large(
        self,
        method: str,
        *path: str,
        content: Iterable[bytes],
        size: int,
        media_type: str,
        **params: Param,
    ) -> Iterator[Iterator[Json]]:
        """Send the parts of a body of `size` bytes, and yield the lines of the answer.

        A server that cannot answer in lines sends a single object. Raises `Problem` if the server
        refuses, and `Disconnected` if the answer breaks off.
        """  # fmt: skip
        headers = {
            "Content-Type": media_type,
            "Content-Length": str(size),
            "Accept": "application/x-ndjson, application/json",
        }
        with _sendable():
            request = self._http.build_request(
                method,
                self._address(path),
                params=_query(params),
                content=content,
                headers=headers,
                timeout=httpx.Timeout(_LARGE_S, connect=_CONNECT_S),
            )
        try:
            answer = self._http.send(request, stream=True)
        except httpx.TransportError as error:
            raise self._unanswered(error) from None
        try:
            if not answer.is_success:
                answer.read()
                raise self._problem(answer)
            yield self._objects(answer)
        except httpx.TransportError as error:
            raise Disconnected(str(error) or type(error).__name__) from error
        finally:
            answer.close()

    def _objects(self, answer: httpx.Response) -> Iterator[Json]:
        """Yield each line of the answer, decoded. Raises `Problem` for a line with a problem."""
        for text in answer.iter_lines():
            try:
                said = json.loads(text)
            except ValueError:
                raise self._stranger(answer) from None
            if not isinstance(said, dict):
                raise self._stranger(answer)
            problem = said.get("problem")
            if problem:
                raise Problem(
                    str(problem.get("detail")),
                    status=int(problem.get("status", 0)),
                    code=str(problem.get("code", "")),
                    body=problem,
                )
            yield said

    def pages(self, *path: str, key: str, limit: int | None = None, **params: Param) -> Json:
        """Get all pages, or the first `limit` entries, and return them as a single page."""
        found: Json = {key: [], "next": None}
        while True:
            left = _PAGE_MAX if limit is None else min(_PAGE_MAX, limit - len(found[key]))
            page = self.get(*path, limit=left, **{**params, "after": found["next"]})
            found = {**page, key: [*found[key], *page[key]], "next": page.get("next")}
            full = limit is not None and len(found[key]) >= limit
            if full or found["next"] is None or not page[key]:
                return found

    @contextmanager
    def stream(self, after: str | None) -> Iterator[Iterator[str]]:
        """Yield the lines of /stream, for the entries that follow the one with the id `after`.

        Raises `Disconnected` if a retry may help, and `Problem` if the server refuses.
        """
        headers = {"Accept": "text/event-stream"}
        if after:
            headers["Last-Event-ID"] = after
        timeout = httpx.Timeout(_SILENCE_S, connect=_CONNECT_S)
        try:
            with self._http.stream(
                "GET", self._address(("stream",)), headers=headers, timeout=timeout
            ) as answer:
                if answer.status_code >= 500 or answer.status_code == 429:
                    raise Disconnected(f"{self.url} answered {answer.status_code}")
                if not answer.is_success:
                    answer.read()
                    raise self._problem(answer)
                yield answer.iter_lines()
        except httpx.TransportError as error:
            raise Disconnected(str(error) or type(error).__name__) from error

    def _ask(
        self, method: str, path: tuple[str, ...], params: dict[str, Param], **more: Any
    ) -> Json:
        more["params"] = _query(params)
        may_repeat = method == "GET" or "Idempotency-Key" in more.get("headers", {})
        try:
            with _sendable():
                request = self._http.build_request(method, self._address(path), **more)
            try:
                answer = self._http.send(request)
            except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError):
                if not may_repeat:
                    raise
                answer = self._http.send(request)
        except httpx.TransportError as error:
            raise self._unanswered(error) from None
        if not answer.is_success:
            raise self._problem(answer)
        return self._body(answer)

    def _address(self, path: tuple[str, ...]) -> str:
        return "/".join([f"{self.url}/api/v1", *map(_segment, path)])

    def _body(self, answer: httpx.Response) -> Json:
        if not answer.content:
            return {}
        body = _decoded(answer)
        if not isinstance(body, dict):
            raise self._stranger(answer)
        return body

    def _problem(self, answer: httpx.Response) -> Problem:
        body = _decoded(answer)
        if not isinstance(body, dict) or "code" not in body:
            return self._stranger(answer)
        detail = str(body.get("detail") or body.get("title") or f"status {answer.status_code}")
        if answer.status_code == 401 and not self._has_token:
            detail += "; give a token with FAIRWARNING_TOKEN or --token-file"
        return Problem(detail, status=answer.status_code, code=str(body["code"]), body=body)

    def _stranger(self, answer: httpx.Response) -> Problem:
        return Problem(
            f"{self.url} answered with status {answer.status_code} and no Fairwarning answer; "
            "set --url or FAIRWARNING_URL to the control plane's address",
            status=answer.status_code,
        )

    def _unanswered(self, error: httpx.TransportError) -> Problem:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return Problem(
                f"the certificate of {self.url} is not trusted; name the file of its authority "
                "with --ca-file or FAIRWARNING_CA_FILE"
            )
        if "WRONG_VERSION_NUMBER" in str(error) or "RECORD_LAYER_FAILURE" in str(error):
            plain = self.url.replace("https://", "http://", 1)
            return Problem(f"{self.url} does not speak TLS; write {plain} with --url")
        if _is_broken(error) and self.url.startswith("http://") and self._speaks_tls():
            safe = self.url.replace("http://", "https://", 1)
            return Problem(f"{self.url} speaks TLS; write {safe} with --url or FAIRWARNING_URL")
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return Problem(
                f"no server answers at {self.url}; start one with `fairwarning serve`, or say "
                "where it is with --url or FAIRWARNING_URL"
            )
        if isinstance(error, httpx.TimeoutException):
            return Problem(f"{self.url} took too long to answer; look at it and try again")
        return Problem(
            f"the connection to {self.url} broke ({error}); see what happened with "
            "`fairwarning history` before you try again"
        )

    def _speaks_tls(self) -> bool:
        """Return whether the server answers a TLS handshake. Nothing is sent but the handshake."""
        parts = urlsplit(self.url)
        anyone = ssl.create_default_context()
        anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
        try:
            address = (parts.hostname or "", parts.port or 80)
            with socket.create_connection(address, timeout=_CONNECT_S) as plain:
                plain.settimeout(_CONNECT_S)
                anyone.wrap_socket(plain).close()
        except (OSError, ValueError):
            return False
        return True

    def _trust(self, ca_file: str | None, *, is_plain: bool) -> ssl.SSLContext | bool:
        if is_plain:
            return False  # there is nothing to verify, and loading certificates takes long
        try:
            return ssl.create_default_context(cafile=ca_file)
        except (OSError, ssl.SSLError) as error:
            raise click.UsageError(
                f"{ca_file} cannot be read as certificates ({error}); give a PEM file"
            ) from None


def _is_broken(error: httpx.TransportError) -> bool:
    """Whether the connection was made and then broke, as one does that speaks another protocol."""
    return isinstance(error, httpx.ReadError | httpx.WriteError | httpx.RemoteProtocolError)


@contextmanager
def _sendable() -> Iterator[None]:
    """Raise `click.UsageError` for text that is not UTF-8, or for a URL that httpx refuses."""
    try:
        yield
    except UnicodeEncodeError as error:
        wrong = error.object[error.start : error.end]
        raise click.UsageError(f"{wrong!r} is not UTF-8 text; write it in UTF-8") from None
    except httpx.InvalidURL as error:
        raise click.UsageError(f"this cannot be sent ({error}); shorten or correct it") from None


def _decoded(answer: httpx.Response) -> object:
    """Return the decoded JSON of a response. It is None if the body is not JSON."""
    try:
        return answer.json()
    except (ValueError, RecursionError):
        return None


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _query(params: dict[str, Param]) -> dict[str, Any]:
    return {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in params.items()
        if value is not None and value != ()
    }


def _segment(name: str) -> str:
    if name in ("", ".", ".."):
        raise click.UsageError(f"{name!r} is no name; see the names with `fairwarning fleet show`")
    return quote(name, safe="")
