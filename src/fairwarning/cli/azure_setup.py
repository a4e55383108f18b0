"""`fairwarning azure-setup` makes Azure's own clients use this server, or undoes that."""

import os
import re
import secrets
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from platformdirs import user_data_path

from fairwarning.cli.azure_env import (
    Access,
    Az,
    az_lines,
    environment,
    exports,
    find_az,
    is_registered,
    sdk_environment,
)
from fairwarning.cli.click_types import duration
from fairwarning.cli.common_options import Session, connected, why_option
from fairwarning.cli.output import echo_json
from fairwarning.cli.table_model import line
from fairwarning.cli.token import default_name
from fairwarning.common.command_errors import Problem

_ROLES = click.Choice(["viewer", "approver", "operator", "admin"])
_CLOUD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_NAME_MAX = 64  # The longest name of a token.
_SUFFIX_BYTES = 3  # Enough to tell the tokens of one user and host apart.
_OURS_NOT = "belongs to Azure itself; choose another name, such as Fairwarning"


def _cloud(_: click.Context, __: click.Parameter, value: str) -> str:
    if not _CLOUD.fullmatch(value):
        raise click.BadParameter("a cloud's name has 1 to 40 letters, digits, '.', '_' and '-'")
    if re.fullmatch(r"azure\w*(cloud|government)", value, re.IGNORECASE):
        raise click.BadParameter(f"{value} {_OURS_NOT}")
    return value


@click.command(
    "azure-setup",
    epilog="""\b
Examples:
  fairwarning azure-setup                  the lines to paste into a shell
  eval "$(fairwarning azure-setup --run)"  the same, done
  fairwarning azure-setup --sdk            the environment of the SDKs and Ansible
  fairwarning azure-setup --role viewer --expires 8h
  fairwarning azure-setup --undo
""",
)
@click.option(
    "--name", "cloud", default="Fairwarning", show_default=True, callback=_cloud, metavar="N",
    help="Name under which az registers this server as a cloud.",
)  # fmt: skip
@click.option(
    "--role",
    type=_ROLES,
    default="operator",
    show_default=True,
    help="Role of the new token, which limits what az may do on this server.",
)
@click.option(
    "--expires",
    type=duration,
    metavar="D",
    help="How long the new token is valid (default: without end).",
)
@click.option(
    "--ca-out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File to which the certificate that az must trust is written (default: in your data "
    "folder).",
)
@click.option(
    "--sdk",
    is_flag=True,
    help="Print environment variables for the Azure SDKs and Ansible instead of az commands.",
)
@click.option("--run", is_flag=True, help="Run the az commands instead of printing them.")
@click.option(
    "--undo",
    is_flag=True,
    help="Restore the settings of az and revoke the tokens that this command has created.",
)
@why_option
@connected
def azure_setup(
    session: Session,
    cloud: str,
    role: str,
    expires: str | None,
    ca_out: Path | None,
    sdk: bool,
    run: bool,
    undo: bool,
    why: str | None,
) -> None:
    """Set up az and the Azure SDKs so that they use this server.

    This creates a token, which is the client secret of a service principal, and prints the lines to
    paste into a shell. The secret is shown only this once.
    """
    if undo:
        if run or sdk:
            raise click.UsageError("--undo stands alone; leave out --run and --sdk")
        _undo(session, cloud, why)
        return
    program = _needed_az() if run else None
    found = session.api.get("azure")
    url, ca_file = _place(session, found, cloud, ca_out)
    made = _make_token(session, cloud, role, expires, why)
    access = Access(
        cloud=cloud,
        url=url,
        tenant=found["tenant"],
        subscription=found["subscription"],
        client_id=made["name"],
        secret=made["secret"],
        ca_file=ca_file,
    )
    around = environment(access, os.environ)
    if program is not None:
        try:
            Az(program, around).set_up(access)
        except Problem:
            session.api.delete("tokens", made["id"], why="az could not be set up")
            raise
        # az has dropped the logins before this one; left valid, their tokens would pile up.
        _revoke(session, cloud, "az has a new one", but=made["id"])
    _tell(session, access, made, around, with_sdk=sdk, has_run=run)


def _needed_az() -> str:
    program = find_az()
    if program is None:
        raise Problem(
            "there is no az on PATH; install Azure's command line, or leave out --run and paste "
            "the lines where it is"
        )
    return program


def _place(
    session: Session, found: dict[str, Any], cloud: str, ca_out: Path | None
) -> tuple[str, str | None]:
    """Return the URL for clients and the certificate file to trust, which may be None.

    Raises `Problem` if the server does not listen to Azure's clients.
    """
    if session.api.url.startswith("https://"):
        # This command reaches it over TLS, so other clients can in the same way.
        given = click.get_current_context().params.get("ca_file")
        if ca_out is not None:
            raise click.UsageError("this server's authority is not ours to write; see --ca-file")
        return session.api.url, None if given is None else str(Path(given).resolve())
    if found["url"] is None or found["ca"] is None:
        raise Problem(
            "this server does not listen to Azure's clients; start it without --no-azure, or "
            "with --azure HOST:PORT"
        )
    path = (ca_out or _default_ca_file(cloud)).resolve()
    _write(path, found["ca"])
    return str(found["url"]), str(path)


def _default_ca_file(cloud: str) -> Path:
    return user_data_path("fairwarning") / "azure" / f"{cloud}.pem"


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, prefix=f".{path.name}-", delete=False
        ) as file:
            file.write(text)
        Path(file.name).chmod(0o644)
        Path(file.name).replace(path)
    except OSError as problem:
        raise Problem(
            f"{path} cannot be written ({problem.strerror}); name another with --ca-out"
        ) from None


def _token_prefix(cloud: str) -> str:
    room = _NAME_MAX - 1 - 2 * _SUFFIX_BYTES
    return f"azure-{cloud}-{default_name()}"[:room] + "-"


def _make_token(
    session: Session, cloud: str, role: str, expires: str | None, why: str | None
) -> dict[str, Any]:
    """Create a token with a new name, because az reuses what it cached under an old name."""
    name = _token_prefix(cloud) + secrets.token_hex(_SUFFIX_BYTES)
    body = {"name": name, "role": role}
    if expires:
        body["expires"] = expires
    # No idempotency key: the server would have to keep the secret to give it again.
    return session.api.post("tokens", body=body, repeatable=False, why=why)


def _tell(
    session: Session,
    access: Access,
    made: dict[str, Any],
    around: dict[str, str],
    *,
    with_sdk: bool,
    has_run: bool,
) -> None:
    shows_secret = with_sdk or not has_run
    variables = {**around, **(sdk_environment(access) if with_sdk else {})}
    lines = exports(variables)
    if not with_sdk and not has_run:
        lines += az_lines(access, is_known=is_registered(access.cloud))
    if session.as_json:
        told = access._asdict()
        del told["secret"]
        echo_json(
            {
                **{_camel(name): value for name, value in told.items()},
                **({"secret": access.secret} if shows_secret else {}),
                "token": made["id"],
                "expires": made["expires"],
                "environment": variables,
                "lines": lines,
                "ran": has_run,
            }
        )
        return
    if has_run:
        session.note(f"az uses {access.url} now, as {access.client_id}. Every shell needs:")
    else:
        session.note("Paste these lines. The secret in them is shown now and never again:")
    for each in lines:
        click.echo(each)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _undo(session: Session, cloud: str, why: str | None) -> None:
    """Restore az, then revoke the tokens. az comes first because it works without the server."""
    ca_file = _default_ca_file(cloud)
    program = find_az()
    notes: Sequence[str] = ["there is no az on PATH, so nothing was changed there"]
    if program is not None:
        trusted = _trusted(ca_file)
        notes = Az(program, trusted).undo(cloud)
    for each in notes:
        session.note(each)
    revoked = _revoke(session, cloud, why)
    ca_file.unlink(missing_ok=True)
    body = {"cloud": cloud, "revoked": revoked, "notes": list(notes)}
    names = ", ".join(each["name"] for each in revoked) or "none"
    session.answer(body, lambda _: [line(f"Tokens revoked: {names}. Undone.")])
    if os.environ.get("REQUESTS_CA_BUNDLE") == str(ca_file) and not session.as_json:
        session.note("In this shell also run: unset REQUESTS_CA_BUNDLE")


def _trusted(ca_file: Path) -> dict[str, str]:
    """Return the variable with the certificate file that this command wrote, else --ca-file."""
    given = click.get_current_context().params.get("ca_file")
    path = ca_file if ca_file.exists() else given
    return {} if path is None else {"REQUESTS_CA_BUNDLE": str(Path(path).resolve())}


def _revoke(
    session: Session, cloud: str, why: str | None, *, but: str = ""
) -> list[dict[str, str]]:
    """Revoke the tokens that this command created for this cloud, user and host, except `but`."""
    pattern = re.escape(_token_prefix(cloud)) + rf"[0-9a-f]{{{2 * _SUFFIX_BYTES}}}"
    ours = [
        each
        for each in session.api.pages("tokens", key="tokens")["tokens"]
        if re.fullmatch(pattern, each["name"]) and each["id"] != but
    ]
    for each in ours:
        session.api.delete("tokens", each["id"], why=why)
    return [{"id": each["id"], "name": each["name"]} for each in ours]
