"""Values and files that no command can use, for the test that gives them to every command.

No host in them needs a name server: whatever is looked up is on loopback or is no host at all.
"""

import random
import re
from collections.abc import Iterator

from fairwarning.scenarios import library

DIGITS = "9" * 5_000
"""Python refuses to make a number of more than 4,300 digits."""
DEEP = 3_000
"""Python gives up at 1,000. A fleet file of more than 16 kB would take a process of its own."""
NOT_UTF8 = "\udcff"
"""How the byte 0xFF of a command line reaches Python."""

TEXTS = (
    "", " ", "-", "-1", ".", "..", "/", "ü", NOT_UTF8, "a\nb", "\x1b[31m\x07\u202e", "%00", "%s%n",
    "x" * 100_000, "nobody", "web", "web-0", "sub/group/web", "Europe/../x",
    "0", "5", "0.5", "9" * 18, "9" * 30, DIGITS, f"-{DIGITS}", "1e400", "1e-300", "nan", "inf",
    "-inf", "٣", "24:00", "00:00", "999999d", "P999999DT999999H", "2026-13-45", "9999-12-31",
    "9999-12-31T23:59:59-12:00", "0001-01-01T00:00", "0001-01-01T00:00+14:00", "99999-01-01",
    "9999-12-31/0001-01-01", "mon-mon 25:00-99:99", "mon-fri 22:00-04:00",
    "{", "{}", "[]", "null", "[" * DEEP, '{"EventId": 5}', '{"EventId": "\\ud800"}',
    f'{{"EventId": "x", "NotBefore": "9999-12-31T23:59:59Z", "DurationInSeconds": {"9" * 4_000}}}',
    f'{{"EventId": "x", "DurationInSeconds": {DIGITS}}}',
)  # fmt: skip
ADDRESSES = (
    "", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:-1", "127.0.0.1:65536", "[::1",
    f"127.0.0.1:{DIGITS}", f"{NOT_UTF8}:1", "\x1b[31m:1", f"{'x' * 300}:1", "127.0.0.1:٣",
)  # fmt: skip
URLS = (
    "", ":", "web", "memory", "ftp://127.0.0.1", "http://", "http://[", "http://127.0.0.1:99999",
    "http://127.0.0.1:x", "http://127.0.0.1:1/\x7f", "http://127.0.0.1:1/a b\n", "http://127.0.0.1℀",
    f"http://{'a' * 70}.localhost:1", f"http://{DIGITS}", f"http://{NOT_UTF8}", "https://127.0.0.1:1",
    "sqlite:///", "sqlite:////", "sqlite:////proc/x/y", "sqlite:////dev/null/x", "sqlite:////tmp",
    f"sqlite:///{NOT_UTF8}/x/../..", f"sqlite:///{'x' * 5_000}", "sqlite:///~nobody-at-all/x",
    "postgresql://127.0.0.1:1/x", "postgresql://[", "postgresql://%zz", "postgresql://127.0.0.1:x/",
)  # fmt: skip

FILES = {
    "empty": b"",
    "blank": b"  \n",
    "nul": b"\0",
    "nul-in-a-string": b'a = "x\0y"',
    "no-utf-8": b'a = "\xff\xfe"',
    "utf-16": "a = 1".encode("utf-16"),
    "byte-order-mark": b"\xef\xbb\xbf",
    "byte-order-mark-and-more": b"\xef\xbb\xbfa = 1",
    "huge-integer": f"a = {DIGITS}".encode(),
    "huge-integer.json": f'{{"a": {DIGITS}}}'.encode(),
    "huge-float": b"a = 1e999999",
    "huge-float.json": b'{"a": 1e999999, "b": NaN}',
    "deep-arrays": b"a = " + b"[" * DEEP,
    "deep-arrays-closed": b"a = " + b"[" * DEEP + b"]" * DEEP,
    "deep-tables": b"a = " + b"{a = " * DEEP,
    "deep-key": b" . ".join([b"a"] * DEEP) + b" = 1",
    "deep.json": b"[" * DEEP + b"]" * DEEP,
    "deep-objects.json": b'{"a":' * DEEP,
    "deep-enough.json": b'{"a":' * 900 + b"1" + b"}" * 900,
    "bad-date": b"a = 9999-99-99",
    "year-0": b"a = 0000-01-01T00:00:00Z",
    "last-date": b"a = 9999-12-31T23:59:59-12:00",
    "first-date": b"a = 0001-01-01T00:00:00+12:00",
    "bad-time": b"a = 25:61:61",
    "control-character": b'a = "\x1b[31m"',
    "escaped-control-character": b'a = "\\u001b[31m\\u0000"',
    "control-character-in-a-key": b'"\\u001b[31m" = 1',
    "surrogate": b'a = "\\ud800"',
    "surrogate.json": b'{"a": "\\ud800"}',
    "long-key": b"x" * 10_000 + b" = 1",
    "long-string": b'a = "' + b"x" * 10_000 + b'"',
    "old-line-ends": b"a = 1\rb = 2",
    "key-twice": b"a = 1\na = 2",
    "fleet.json": b'{"vm": [{"name": "x"}]}',
    "list.json": b"[]",
    "null.json": b"null",
    "number.json": b"5",
    "certificate": b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    "far-apart.jsonl": b'{"kind":"begin","at":"0001-01-01T00:00:00+14:00","s":-1e308}\n'
    b'{"kind":"document","at":"9999-12-31T23:59:59-12:00","s":1e308,"document":'
    b'{"Events":[{"EventId":"x","NotBefore":"9999-12-31T23:59:59Z"}]}}\n'
    b'{"kind":"end","s":0,"at":"9999-12-31T23:59:59-12:00"}\n',
    "last-date.jsonl": b'{"kind":"begin","at":"9999-12-31T23:59:59-12:00","s":0}\n'
    b'{"kind":"document","at":"9999-12-31T23:59:59-12:00","s":1,"document":'
    b'{"Events":[{"EventId":"x","NotBefore":"Mon, 19 Sep 2016 18:29:47 GMT"}]}}\n'
    b'{"kind":"end","s":1e10,"at":"9999-12-31T23:59:59-12:00"}\n',
    "state.json": b'{"form":1,"memory":{}}',
    "new-state.json": b'{"form":1e400,"memory":[]}',
    "odd-state.json": b'{"form":true,"memory":' + b"[" * 600 + b"]" * 600 + b"}",
}

FLEET = b"""\
test = true

[[vm]]
name = "db"
addresses = ["10.0.0.5"]

[[availability_set]]
name = "web"
update_domains = 3
instances = [{ name = "web-0", addresses = ["10.0.0.10"] }]

[[scale_set]]
name = "workers"
orchestration = "uniform"
capacity = 2
addresses = ["10.0.1.10", "10.0.1.11"]
terminate_notice = "PT5M"

[[cloud_service]]
name = "shop"
roles = { FrontEnd = 2 }
"""
AGENT = b"""\
name = "web-0"
state = "/dev/null/state"
margin = "5s"
listen = ""

[approve]
when = "success"

[[rule]]
name = "all"
types = ["Reboot"]
duration = { max = "5m" }

[[rule.scheduled]]
name = "drain"
run = ["/nowhere/drain", "{event.id}"]
timeout = "5s"

[[rule.scheduled]]
http = { method = "POST", url = "http://127.0.0.1:1/", headers = { a = "b" } }

[[rule.started]]
systemd = { stop = ["a.service"] }

[[rule.scheduled]]
kubernetes = { node = "{me}", drain = true, grace_period = "30s" }

[[rule.finished]]
notify = { url = "slack://TOKEN", title = "over" }
on_failure = "continue"
"""
SERVE = b"""\
rate = 5
clock-speed = 2
proxy = ["10.0.0.1"]
log-level = "info"
activation-delay = 5
"""
RECORDING = b"""\
{"kind":"begin","at":"2026-01-01T00:00:00Z","s":0}
{"kind":"document","at":"2026-01-01T00:00:00Z","s":1,"version":"2020-07-01","document":\
{"Events":[{"EventId":"A","EventType":"Reboot","Resources":["web-0"],\
"NotBefore":"Thu, 01 Jan 2026 00:15:00 GMT","DurationInSeconds":9}]}}
{"kind":"document","at":"2026-01-01T00:00:00Z","s":960,"document":{"Events":[]}}
{"kind":"end","at":"2026-01-01T00:00:00Z","s":970}
"""
SCENARIO = library.text("user-reboot").encode()

_VALUE = re.compile(rb'[=:]\s*("[^"]*"|\d+|\[[^\]]*\]|\{[^}]*\}|true)')
_OTHERS = (
    DIGITS.encode(), b"-5", b"9" * 25, b"1e999", b"nan", b"0000-01-01",
    b"9999-12-31T23:59:59-12:00", b"12:00:00", b"[]", b"{}", b"[[[]]]", b"[1]", b'""', b"true",
    b'"\\u001b"', b'"\\u0000"', b'["\\u0000"]', b'"' + b"x" * 10_000 + b'"', b"'999999d'",
    b'"99999999999999999999d"', b'"{"', b"[" * 200 + b"]" * 200,
)  # fmt: skip


def broken(good: bytes, count: int, seed: str) -> Iterator[bytes]:
    """The file with bytes changed, cut off, or with one of its values replaced by another."""
    dice = random.Random(seed)
    spots = [found.span(1) for found in _VALUE.finditer(good)]
    for number in range(count):
        match number % 4:
            case 0:
                at = dice.randrange(len(good))
                some = bytes([dice.randrange(256)])
                yield good[:at] + some + good[at + dice.randrange(3) :]
            case 1:
                yield good[: dice.randrange(len(good))]
            case _:
                start, end = dice.choice(spots)
                yield good[:start] + dice.choice(_OTHERS) + good[end:]
