"""The file of the agent: what it may say, and that each mistake is told with its line."""

from pathlib import Path

import pytest

from fairwarning.agent.config.model import (
    Concerns,
    HaProxy,
    Hold,
    Http,
    Kubernetes,
    Nginx,
    Notify,
    OnFailure,
    Patroni,
    Peers,
    Run,
    Shared,
    Span,
    Systemd,
    When,
)
from fairwarning.agent.config.reader import read_config, read_file
from fairwarning.agent.config.table import BadConfig

ROOT = Path(__file__).parents[2]

WHOLE = """\
endpoint = "http://127.0.0.1:8169/vm/web-0"
name = "web-0"
state = "/tmp/state.json"
margin = "1m"
listen = ""

[approve]
when = "always"
shared = "all"
lead = "2m"
hold = { command = ["healthy", "{me}"], every = "5s" }
peers = { urls = ["http://web-1:9169"] }

[[rule]]
name = "reboots"
types = ["Reboot", "redeploy"]
sources = ["Platform"]
description = "host|rack"
duration = { min = "10s", max = "1h" }
resources = ["web-*"]
tags = { role = "front" }
time_left = { min = "1m" }
concerns = "any"
approve = { when = "never" }

[[rule.scheduled]]
run = ["drain", "{event.id}"]
undo = "undrain"
timeout = "90s"
retries = 2
on_failure = "continue"

[[rule.scheduled]]
http = { url = "http://lb/out", method = "put", headers = { A = "{me}" }, body = '{"a": {"b": 1}}' }
undo = { url = "http://lb/in" }

[[rule.scheduled]]
kubernetes = { drain = false, grace_period = "20s" }

[[rule.started]]
systemd = { stop = ["a.service", "b.service"] }

[[rule.started]]
haproxy = { socket = "/run/haproxy.sock", server = "web/{me}", state = "maint", wait = false }

[[rule.started]]
nginx = { file = "/etc/nginx/up.conf", upstream = "web", server = "10.0.0.5:80" }

[[rule.finished]]
notify = { url = "slack://a/b/c" }

[[rule.cancelled]]
run = "echo never mind"
"""


def test_everything_that_can_be_said() -> None:
    config = read_config(WHOLE)
    assert (config.name, config.margin_s, config.listen) == ("web-0", 60, None)
    assert config.approve.hold == Hold(command=("healthy", "{me}"), every_s=5)
    assert config.approve.peers == Peers(urls=("http://web-1:9169",))
    (rule,) = config.rules
    assert (rule.types, rule.concerns) == (("Reboot", "redeploy"), Concerns.ANY)
    assert (rule.duration, rule.time_left) == (Span(min_s=10, max_s=3600), Span(min_s=60))
    assert (rule.approve.when, rule.approve.shared, rule.approve.lead_s) == (
        When.NEVER, Shared.ALL, 120,
    )  # fmt: skip
    drain, out, cordon = rule.scheduled
    assert drain.settings == Run(command=("drain", "{event.id}"))
    assert drain.undo == Run(command=("/bin/sh", "-c", "undrain"), is_shell=True)
    assert (drain.timeout_s, drain.retries, drain.on_failure) == (90, 2, OnFailure.CONTINUE)
    assert isinstance(out.settings, Http)
    assert (out.settings.method, out.undo) == ("PUT", Http(url="http://lb/in"))
    assert cordon.settings == Kubernetes(drain=False, grace_period_s=20)
    assert [type(each.settings) for each in rule.started] == [Systemd, HaProxy, Nginx]
    assert [type(each.settings) for each in rule.finished] == [Notify]


RULE = "[[rule]]\n"
ACTION = "[[rule]]\n[[rule.scheduled]]\n"
MISTAKES = [
    ("", 1, "there is no rule"),
    ("rule = 5", 1, "`rule` must be a list, not a whole number"),
    ("[[rule]\n", 1, "not TOML"),
    ("margn = '3s'\n" + RULE, 1, "did you mean `margin`?"),
    ("margin = 3\n" + RULE, 1, "`margin` must be a string"),
    ("margin = 'soon'\n" + RULE, 1, "write one like 30s"),
    ("endpoint = 'https://x'\n" + RULE, 1, "http://169.254.169.254"),
    ("listen = '9169'\n" + RULE, 1, "HOST:PORT"),
    ("[approve]\nwhen = 'sometimes'\n" + RULE, 2, "success, never, always"),
    (
        "[approve]\nhold = {}\n" + RULE,
        2,
        "`command` is missing; while it exits with anything but 0",
    ),
    ("[approve]\npeers = {}\n" + RULE, 2, "either a `directory`"),
    ("[approve]\npeers = {urls = ['web-1']}\n" + RULE, 2, "http://web-1:9169"),
    ("[approve]\nshared = 'leader'\npeers = {directory = '/x'}\n" + RULE, 3, "asks no peers"),
    (RULE + "name = 'a'\n" + RULE + "name = 'a'\n", 4, "two rules are called 'a'"),
    (RULE + "types = ['Rebot']\n", 2, "did you mean `Reboot`?"),
    (RULE + "types = 'Reboot'\n", 2, "must be a list"),
    (RULE + "description = '('\n", 2, "no regular expression"),
    (RULE + "duration = {min = '5s', max = '1s'}\n", 2, "nothing fits"),
    (RULE + "time_left = {}\n", 2, "needs `min`"),
    (RULE + "concerns = 'others'\napprove = {}\n", 3, "never approved"),
    (ACTION, 2, "an action has one of run, http"),
    (ACTION + "run = 'a'\nhttp = {url = 'http://x'}\n", 2, "only one of"),
    (ACTION + "run = []\n", 3, "must be a command"),
    (ACTION + "run = ['a', '{event.ids}']\n", 3, "did you mean `{event.id}`?"),
    (ACTION + "run = ['a', '{nonsense}']\n", 3, "put a space after"),
    (ACTION + "run = 'drain {event.id}'\n", 3, "$FAIRWARNING_EVENT_ID"),
    (ACTION + "run = 'a'\ntimeout = '0s'\n", 4, "at least 1s"),
    (ACTION + "run = 'a'\nretries = -1\n", 4, "from 0 to 100"),
    (ACTION + "run = 'a'\non_failure = 'stopp'\n", 4, "did you mean `stop`?"),
    (ACTION + "systemd = {stop = ['a']}\nundo = 'b'\n", 4, "undoes itself"),
    (ACTION + "notify = {url = 'slack://x'}\nundo = 'b'\n", 4, "cannot be undone"),
    ("[[rule]]\n[[rule.finished]]\nrun = 'a'\nundo = 'b'\n", 4, "stays"),
    (ACTION + "http = {url = 'ftp://x'}\n", 3, "begins with http:// or https://"),
    (ACTION + "http = {url = 'http://x', method = 'EAT'}\n", 3, "GET, POST"),
    (ACTION + "http = {}\n", 3, "`url` is missing"),
    (ACTION + "haproxy = {socket = '/x', server = 'web'}\n", 3, "backend/name"),
    (ACTION + "haproxy = {socket = '/x', server = 'a/b', state = 'off'}\n", 3, "drain or maint"),
    (ACTION + "systemd = {}\n", 3, "`stop` is missing"),
    (ACTION + "nginx = {file = '/x', upstream = 'u'}\n", 3, "`server` is missing"),
    (ACTION + "notify = {url = 'x'}\n", 3, "slack://"),
    (ACTION + "kubernetes = {grace = 5}\n", 3, "unknown key `grace`"),
]


@pytest.mark.parametrize(("text", "line", "said"), MISTAKES, ids=lambda each: repr(each)[:40])
def test_a_mistake_is_told_with_its_line_and_what_to_do(text: str, line: int, said: str) -> None:
    with pytest.raises(BadConfig) as caught:
        read_config(text)
    assert [each.line for each in caught.value.mistakes] == [line], str(caught.value)
    assert said in caught.value.mistakes[0].message


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(BadConfig) as caught:
        read_config("margin = 1\n\n[[rule]]\ntypes = ['Freez']\n[[rule.started]]\nrunn = 'x'\n")
    assert [each.line for each in caught.value.mistakes] == [1, 4, 5, 6]


def test_a_type_that_nobody_knows_yet_may_be_named() -> None:
    assert read_config("[[rule]]\ntypes = ['Defragment']\n").rules[0].types == ("Defragment",)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadConfig, match="UTF-8"):
        read_file(path)


def test_the_example_is_in_order() -> None:
    assert len(read_file(ROOT / "examples/agent.toml").rules) >= 3


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("[[rule.cancelled]]\nrun = 'x'\nundo = 'y'", "what runs when an event is cancelled stays"),
        (
            '[[rule.started]]\nhttp = { url = "http://x", headers = { A = "b\\nC: d" } }',
            "`A` is no header",
        ),
        (
            "[[rule.started]]\nhaproxy = { socket = '/s', server = 'a/b/c' }",
            "`server` is written backend/name",
        ),
        (
            "[rule.approve.peers]\ndirectory = '/d'\nurls = ['http://web-1:9169']",
            "either a `directory` that all share, or `urls`",
        ),
    ],
)
def test_what_cannot_go_together_is_refused(action: str, said: str) -> None:
    with pytest.raises(BadConfig, match=said):
        read_config(f"[[rule]]\n{action}\n")


def test_haproxy_waits_and_nginx_reloads_unless_told_otherwise() -> None:
    text = """
        [[rule]]
        [[rule.started]]
        haproxy = { socket = "/s", server = "a/b" }
        [[rule.started]]
        nginx = { file = "/f", upstream = "u", server = "s" }
        [[rule.started]]
        nginx = { file = "/f", upstream = "u", server = "s", reload = ["my-nginx", "reload"] }
    """
    haproxy, nginx, other = (each.settings for each in read_config(text).rules[0].started)
    assert isinstance(haproxy, HaProxy)
    assert haproxy.wait
    assert isinstance(nginx, Nginx)
    assert nginx.reload == ("nginx", "-s", "reload")
    assert isinstance(other, Nginx)
    assert other.reload == ("my-nginx", "reload")


def test_a_shutdown_of_the_host_waits_only_if_told_so() -> None:
    assert not read_config("[[rule]]").host_shutdown.delay
    assert read_config("[[rule]]\n[host_shutdown]\ndelay = true").host_shutdown.delay
    with pytest.raises(BadConfig, match="`delay` must be true or false"):
        read_config("[[rule]]\n[host_shutdown]\ndelay = 'yes'")
    with pytest.raises(BadConfig, match="unknown key `wait`"):
        read_config("[[rule]]\n[host_shutdown]\nwait = true")


def test_patroni_needs_nothing_and_takes_everything() -> None:
    text = """
        [[rule]]
        [[rule.scheduled]]
        patroni = {}
        [[rule.scheduled]]
        [rule.scheduled.patroni]
        url = "https://db-0:8008"
        candidate = "db-1"
        switch_back = true
        user = "fw"
        password_file = "/run/credentials/patroni"
        ca_file = "/ca.pem"
        cert_file = "/me.pem"
        key_file = "/me.key"
    """
    plain, whole = (each.settings for each in read_config(text).rules[0].scheduled)
    assert plain == Patroni(url="http://127.0.0.1:8008")
    assert whole == Patroni(
        url="https://db-0:8008", candidate="db-1", switch_back=True, user="fw",
        password_file="/run/credentials/patroni", ca_file="/ca.pem", cert_file="/me.pem",
        key_file="/me.key",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('url = "db-0:8008"', "`url` is that of Patroni's REST API"),
        ('url = "http://fw:secret@db-0:8008"', "`url` is that of Patroni's REST API"),
        ('url = "http://db-0:port"', "`url` is that of Patroni's REST API"),
        ('ca_file = "/ca.pem"', "begin `url` with https://"),
        ('user = "a", password = "b", password_file = "/c"', "take one out"),
        ('user = "a"', "`user` needs `password`"),
        ('password = "a"', "`user` needs `password`"),
        ('key_file = "/k"', "`cert_file`, which is missing"),
        ('candidate = "{nobody}"', "`{nobody}` is unknown"),
        ("switchback = true", "did you mean `switch_back`"),
    ],
)
def test_mistakes_about_patroni(settings: str, said: str) -> None:
    with pytest.raises(BadConfig, match=said):
        read_config(f"{ACTION}patroni = {{ {settings} }}\n")


def test_a_password_is_in_no_log(tmp_path: Path) -> None:
    text = f'{ACTION}patroni = {{ user = "fw", password = "secret" }}'
    (action,) = read_config(text).rules[0].scheduled
    assert "secret" not in action.title + repr(action) + action.key("E1")


def test_what_is_just_within_a_bound_is_taken() -> None:
    text = """
        listen = "[::1]:65535"
        [[rule]]
        duration = { min = "5m", max = "5m" }
        [[rule.started]]
        run = "x"
        timeout = "1s"
        retries = 100
    """
    read = read_config(text)
    assert read.listen == ("::1", 65_535)
    assert read.margin_s == 30
    (action,) = read.rules[0].started
    assert (action.timeout_s, action.retries) == (1, 100)


@pytest.mark.parametrize(
    "text",
    [
        "listen = '127.0.0.1:65536'\n[[rule]]",
        "[[rule]]\n[rule.approve.hold]\ncommand = 'x'\nevery = '0s'",
        "[[rule]]\n[[rule.started]]\nrun = 'x'\nretries = true",
        "[[rule]]\n[[rule.started]]\nrun = 'x'\nretries = 101",
    ],
)
def test_what_is_just_beyond_a_bound_is_refused(text: str) -> None:
    with pytest.raises(BadConfig):
        read_config(text)
