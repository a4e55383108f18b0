"""What people get who try to log in: there are service principals only, and how to be one.

`az login` opens the page, and `az login --use-device-code` prints the message. A refusal of
the request for a device code would end in a traceback of az, so it gets one that no token is
ever given for; the token endpoint then says no, and az prints that as one line.
"""

from collections.abc import Mapping
from html import escape
from urllib.parse import urlsplit

WHAT_TO_DO = (
    "Fairwarning knows no people, only service principals. To log in as one, run: "
    "fairwarning azure-setup --run"
)
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
OWN_FORMS = "http://localhost:* http://127.0.0.1:* http://[::1]:*"
"""Where the form of the page may be sent to: to a program that waits on the reader's machine."""
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Fairwarning</title></head><body>
<h1>Nobody logs in here</h1>
<p>Fairwarning knows no people, only service principals. In a shell, run:</p>
<pre>fairwarning azure-setup --run</pre>
{form}</body></html>
"""
_FORM = """<form method="post" action="{action}">
<input type="hidden" name="error" value="access_denied">
<input type="hidden" name="error_description" value="{description}">
<input type="hidden" name="state" value="{state}">
<button>End the login that waits</button>
</form>
"""


def device_code(authorize_url: str) -> Mapping[str, object]:
    """It lapses at once: a client asks for the token one time and is told what to do."""
    return {
        "device_code": "none",
        "user_code": "none",
        "verification_uri": authorize_url,
        "expires_in": 5,
        "interval": 1,
        "message": WHAT_TO_DO,
    }


def login_page(query: Mapping[str, str]) -> str:
    """With a button that ends the client's wait, if it waits on this machine."""
    target = query.get("redirect_uri", "")
    form = ""
    if _is_own(target):
        form = _FORM.format(
            action=escape(target),
            description=escape(WHAT_TO_DO),
            state=escape(query.get("state", "")),
        )
    return _PAGE.format(form=form)


def _is_own(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme == "http" and parts.hostname in _LOOPBACK
    except ValueError:
        return False
