"""`HOST:PORT`, as people write it."""

import click


def one_address(value: str) -> tuple[str, int]:
    host, _, port = value.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise click.BadParameter(f"{value!r} is no HOST:PORT; write one like 127.0.0.1:8169")
    return "127.0.0.1" if host == "localhost" else host.strip("[]"), int(port)
