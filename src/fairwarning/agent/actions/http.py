"""Sends the HTTP request of an `http` action. Other actions share its `exchange`.

It uses the proxies of the environment and the CAs of the system, because the server may be
anywhere, unlike the metadata service.
"""

import asyncio
import base64
import re
import ssl
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, unquote, urlsplit

import h11

from fairwarning.agent.actions.base import ActionFailed, Context, reason
from fairwarning.agent.config.model import Http
from fairwarning.common.url_redaction import redacted

ANSWER_BYTES_MAX = 1024 * 1024  # The actions need a status, or a short document.
CLOSE_S_MAX = 1.0  # The answer is complete, so a slow end of TLS is not worth more.
_READ_BYTES = 65_536  # The usual size of a pipe's or a socket's buffer.
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def request(settings: Http, context: Context) -> None:
    """Send the request. Raises ActionFailed unless the response is 2xx.

    The message of the exception contains no secrets of the URL.
    """
    prepared = prepare(settings, context)
    proxy = proxy_of(prepared)
    shown = redacted(context.render(settings.url))
    if proxy:
        # The error names the proxy, too, because it may be the proxy that cannot be reached.
        shown = f"{shown} (through the proxy {redacted(proxy)})"
    try:
        status = await _status(prepared, proxy)
    except ssl.SSLCertVerificationError as problem:
        raise ActionFailed(f"{shown} is not trusted: {problem.verify_message}") from None
    except OSError as problem:
        raise ActionFailed(f"{shown} cannot be reached: {reason(problem)}") from None
    except h11.RemoteProtocolError:
        raise ActionFailed(f"{shown} gave no answer in HTTP") from None
    except h11.LocalProtocolError:
        raise ActionFailed(f"{shown} cannot be asked: a method or header is not valid") from None
    if not 200 <= status <= 299:
        raise ActionFailed(f"{shown} answered {status}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    method: str
    is_tls: bool
    host: str
    port: int
    authority: str
    """The value of the Host header, without user and password."""
    target: str
    headers: Mapping[str, str]
    body: bytes


async def _status(prepared: Prepared, proxy: str | None) -> int:
    streams = await (_through(proxy, prepared) if proxy else _directly(prepared))
    headers = {"Host": prepared.authority, **prepared.headers}
    target = prepared.target
    if proxy and not prepared.is_tls:
        target = f"http://{prepared.authority}{target}"
        headers |= _proxy_headers(proxy)
    outgoing = Outgoing(method=prepared.method, target=target, headers=headers, body=prepared.body)
    return (await exchange(streams, outgoing)).status


def proxy_of(prepared: Prepared) -> str | None:
    """Return the proxy that the environment sets for the request, or None for no proxy.

    The variables are `https_proxy`, `http_proxy`, `all_proxy` and `no_proxy`.
    """
    proxies = urllib.request.getproxies()
    chosen = proxies.get("https" if prepared.is_tls else "http") or proxies.get("all")
    if chosen is None or urllib.request.proxy_bypass(f"{prepared.host}:{prepared.port}"):
        return None
    return chosen if "://" in chosen else f"http://{chosen}"


def _proxy_headers(proxy: str) -> dict[str, str]:
    parts = urlsplit(proxy)
    if parts.username is None:
        return {}
    return {"Proxy-Authorization": basic(parts.username, parts.password)}


async def _directly(prepared: Prepared) -> Streams:
    tls = ssl.create_default_context() if prepared.is_tls else None
    return await asyncio.open_connection(prepared.host, prepared.port, ssl=tls)


async def _through(proxy: str, prepared: Prepared) -> Streams:
    parts = urlsplit(proxy)
    if parts.scheme != "http" or not parts.hostname:
        raise ActionFailed(f"the proxy {redacted(proxy)} is not one of http://HOST:PORT")
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
    if not prepared.is_tls:
        return reader, writer
    try:
        await _connect(proxy, prepared, reader, writer)
        await writer.start_tls(ssl.create_default_context(), server_hostname=prepared.host)
    except BaseException:
        writer.transport.abort()
        raise
    return reader, writer


async def _connect(
    proxy: str, prepared: Prepared, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Ask the proxy for a tunnel. Raises ActionFailed if it refuses."""
    host = f"[{prepared.host}]" if ":" in prepared.host else prepared.host
    place = f"{host}:{prepared.port}"
    connection = h11.Connection(our_role=h11.CLIENT)
    headers = [("Host", place), *_proxy_headers(proxy).items()]
    writer.write(connection.send(h11.Request(method="CONNECT", target=place, headers=headers)))
    writer.write(connection.send(h11.EndOfMessage()) or b"")
    answer = await read_head(connection, reader)
    if not 200 <= answer.status_code <= 299:
        raise ActionFailed(f"the proxy {redacted(proxy)} answered {answer.status_code}")


_TEMPLATE = re.compile(r"(?<!\$)\{[a-z][a-z0-9_.]*\}")
_JSON = re.compile(r"\s*(\{\s*[\"}]|\[|\{event\.json\}\s*$)")
_NEVER_IN_HEADERS = re.compile(r"[\r\n\0]+")
# Characters that a URL may contain. All others are escaped. `%` is here to keep existing escapes.
_URL_SAFE = "%/:?#[]@!$&'()*+,;=~"


def prepare(settings: Http, context: Context) -> Prepared:
    """Return the request with its templates filled in. Raises ActionFailed if the URL is wrong."""
    parts = urlsplit(quote(_filled(settings.url, context, _in_url), safe=_URL_SAFE))
    host, port = _place(parts)
    is_tls = parts.scheme == "https"
    render = context.render_json if is_json(settings) else context.render
    body = render(settings.body).encode()
    return Prepared(
        method=settings.method.upper(),
        is_tls=is_tls,
        host=host,
        port=port or (443 if is_tls else 80),
        authority=parts.netloc.rpartition("@")[2],
        target=(parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
        headers=_headers(settings, context, parts, bool(body)),
        body=body,
    )


def is_json(settings: Http) -> bool:
    said = {name.lower(): value for name, value in settings.headers.items()}.get("content-type")
    return bool(_JSON.match(settings.body)) if said is None else "json" in said.lower()


def basic(user: str | None, password: str | None) -> str:
    """Return the Basic credentials for a user and a password that are escaped as in a URL."""
    both = f"{unquote(user or '')}:{unquote(password or '')}"
    return "Basic " + base64.b64encode(both.encode()).decode()


def _place(parts: SplitResult) -> tuple[str, int | None]:
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme not in ("http", "https") or not host:
        raise ActionFailed("the url is no web address; it begins with http:// or https://")
    return host, port


def _headers(
    settings: Http, context: Context, parts: SplitResult, has_body: bool
) -> dict[str, str]:
    headers = {"User-Agent": "fairwarning"}
    if has_body:
        headers["Content-Type"] = (
            "application/json" if is_json(settings) else "text/plain; charset=utf-8"
        )
    if parts.username is not None:
        headers["Authorization"] = basic(parts.username, parts.password)
    for name, value in settings.headers.items():
        same = next((each for each in headers if each.lower() == name.lower()), name)
        headers[same] = _filled(value, context, _in_header)
    return headers


def _filled(text: str, context: Context, escape: Callable[[str], str]) -> str:
    def fill(found: re.Match[str]) -> str:
        value = context.render(found[0])
        return value if value == found[0] else escape(value)

    return _TEMPLATE.sub(fill, text)


def _in_url(value: str) -> str:
    return quote(value, safe="")


def _in_header(value: str) -> str:
    """Escape characters that are not ASCII as in a URL, because header values must be ASCII."""
    return quote(_NEVER_IN_HEADERS.sub(" ", value), safe=_URL_SAFE + ' "<>\\^`{|}')


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    method: str
    target: str
    headers: Mapping[str, str]
    """The headers with `Host`. The length of the body and the end of the connection are added."""
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    body: bytes
    """The body, up to a limit."""


async def exchange(streams: Streams, outgoing: Outgoing) -> Answer:
    """Send the request, read its response, and close the connection.

    Raises OSError if the connection breaks, and h11's exceptions if either side does not speak
    HTTP. The connection is closed in any case.
    """
    reader, writer = streams
    is_closed = False
    try:
        answer = await _ask(reader, writer, outgoing)
        writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(CLOSE_S_MAX):
                await writer.wait_closed()
                is_closed = True
        return answer
    finally:
        # Python 3.11.2, which Debian 12 has, breaks on aborting a TLS transport that is closed.
        if not is_closed:
            writer.transport.abort()


async def read_head(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Response:
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_READ_BYTES))
        elif isinstance(event, h11.Response):
            return event
        elif isinstance(event, h11.ConnectionClosed):
            raise h11.RemoteProtocolError("closed before the answer")


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, outgoing: Outgoing
) -> Answer:
    connection = h11.Connection(our_role=h11.CLIENT)
    sent = {**outgoing.headers, "Connection": "close"}
    if outgoing.body or outgoing.method in ("POST", "PUT", "PATCH"):
        sent["Content-Length"] = str(len(outgoing.body))
    head = h11.Request(method=outgoing.method, target=outgoing.target, headers=list(sent.items()))
    for event in (head, h11.Data(data=outgoing.body), h11.EndOfMessage()):
        writer.write(connection.send(event) or b"")
    await writer.drain()
    answer = await read_head(connection, reader)
    return Answer(status=answer.status_code, body=await _body(connection, reader))


async def _body(connection: h11.Connection, reader: asyncio.StreamReader) -> bytes:
    """Read the response to its end, up to a limit, because some servers stop their work if the
    client disconnects.
    """
    parts: list[bytes] = []
    size = 0
    while size < ANSWER_BYTES_MAX:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            read = await reader.read(_READ_BYTES)
            size += len(read)
            connection.receive_data(read)
        elif isinstance(event, h11.Data):
            parts.append(bytes(event.data))
        elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
            break
    return b"".join(parts)
