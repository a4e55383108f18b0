"""Sends a message to people through Apprise.

Apprise runs in a separate process (`send_notification.py`). In the agent, it would double the
memory, and a thread that sends could not be cut off.
"""

import importlib.util
import json
import sys

from fairwarning.agent.actions import send_notification
from fairwarning.agent.actions.base import ActionFailed, Context
from fairwarning.agent.actions.processes import run
from fairwarning.agent.config.model import Notify
from fairwarning.common.url_redaction import redacted

NO_PACKAGE = (
    "notify needs Apprise; install the extra `chat`: pip install 'fairwarning-client[chat]', or "
    "'fairwarning[chat]' beside the server"
)
_WHY = {
    send_notification.NO_PACKAGE: NO_PACKAGE,
    send_notification.NO_SERVICE: (
        "Apprise knows no such service or the url lacks something; see Apprise's list of urls"
    ),
    send_notification.NOT_TAKEN: "the service did not take the message",
}


def is_available() -> bool:
    return importlib.util.find_spec("apprise") is not None


async def send(settings: Notify, context: Context) -> None:
    """Send the message. Raises ActionFailed if it was not sent.

    The message of the exception hides the secrets of the address.
    """
    url = context.render(settings.url)
    finished = await run(
        [sys.executable, "-m", send_notification.__name__],
        environment={},
        stdin=json.dumps(message(settings, context)).encode(),
    )
    if finished.code != 0:
        why = _WHY.get(finished.code, f"Apprise ended with code {finished.code}")
        raise ActionFailed(f"{redacted(url)}: {why}")


def message(settings: Notify, context: Context) -> dict[str, str]:
    event = context.event
    said = {
        "url": context.render(settings.url),
        "title": context.render(settings.title),
        "body": context.render(settings.body),
    }
    if not said["title"] and not said["body"]:
        said["title"] = f"{event.type} of {', '.join(event.resources)}"
        said["body"] = f"{context.phase.value} on {context.me.name}: {event.id}"
    return said
