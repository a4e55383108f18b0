"""A mock as people write it, with Flask and its own server."""

import logging
import sys
from pathlib import Path

from flask import Flask, Response, request  # type: ignore[import-not-found,unused-ignore]

host, port, document, sources = sys.argv[1:]
documents = dict.fromkeys(sources.split(","), Path(document).read_bytes())
app = Flask(__name__)
logging.getLogger("werkzeug").disabled = True


@app.get("/metadata/scheduledevents")  # type: ignore[untyped-decorator,unused-ignore]
def scheduled_events() -> Response:
    found = documents.get(request.remote_addr or "")
    if found is None:
        return Response(status=404)
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "x-ms-request-id": "11111111-2222-3333-4444-555555555555",
    }
    return Response(found, headers=headers)


app.run(host, int(port))
