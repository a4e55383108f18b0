"""`HOST:PORT`, as people write it."""

import click


def one_address(value: str) -> tuple[str, int]:
    host, _, port = value.rpartition(":")
    if not _is_host(host) or not _is_port(port):
        raise click.BadParameter(f"{value!r} is no HOST:PORT; write one like 127.0.0.1:8169")
    return "127.0.0.1" if host == "localhost" else host.strip("[]"), int(port)


def _is_port(text: str) -> bool:
    # Python refuses to make a number of thousands of digits.
    return text.isascii() and text.isdigit() and len(text) <= 5 and int(text) < 65_536


def _is_host(text: str) -> bool:
    try:
        text.encode("idna")  # As the resolver will, which refuses long names.
    except UnicodeError:
        return False
    return bool(text) and text.isprintable()
