"""A program that sends the message on its standard input. Its exit code says whether it worked.

The message is not an argument, because every user of the VM can read the arguments of a process.
"""

import importlib
import json
import logging
import sys
from typing import Any

NO_PACKAGE, NO_SERVICE, NOT_TAKEN = 10, 11, 12


def main() -> int:
    message = json.load(sys.stdin)
    try:
        apprise: Any = importlib.import_module("apprise")
    except ImportError:
        return NO_PACKAGE
    # Apprise logs whole addresses, which contain tokens and passwords.
    logging.disable()
    service = apprise.Apprise()
    if not service.add(message["url"]):
        return NO_SERVICE
    is_sent = service.notify(body=message["body"] or message["title"], title=message["title"])
    return 0 if is_sent else NOT_TAKEN


if __name__ == "__main__":
    sys.exit(main())
