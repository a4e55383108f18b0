"""Makes the OpenAPI 3.1 document from the table of routes."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from fairwarning import __version__
from fairwarning.operator_api.problems import MEDIA_TYPE
from fairwarning.operator_api.route import Route
from fairwarning.operator_api.schemas import FleetLine, ProblemBody

PREFIX = "/api/v1"
_REF = "#/components/schemas/{name}"
_PARAMETER = re.compile(r"\{(\w+)(?::path)?\}")
_STATUSES = {
    400: "The request cannot be read",
    401: "A token is needed",
    403: "Not allowed",
    404: "There is no such thing",
    408: "The body came too slowly",
    409: "The rules say no",
    413: "The body is too large",
    415: "The body is of another type",
    422: "A field makes no sense",
    503: "The store is down",
}


_STREAM: Mapping[str, Any] = {
    "operationId": "getStream",
    "summary": "What happens, as server-sent events, one for each Entry",
    "description": "Needs the role `viewer`. Without a position it begins now.",
    "tags": ["history"],
    "parameters": [
        {"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"}},
        {"name": "after", "in": "query", "schema": {"type": "string"}},
    ],
    "responses": {
        "200": {
            "description": "A stream",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        **{
            str(status): {
                "description": _STATUSES[status],
                "content": {
                    MEDIA_TYPE: {"schema": {"$ref": _REF.format(name=ProblemBody.__name__)}}
                },
            }
            for status in (401, 403, 422, 503)
        },
    },
}


def document(routes: Iterable[Route]) -> Mapping[str, Any]:
    table = list(routes)
    kinds = [ProblemBody, *(each.answer for each in table),
             *(each.body for each in table if each.body is not None), FleetLine]  # fmt: skip
    _, schemas = msgspec.json.schema_components(kinds, ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for each in table:
        path = PREFIX + _PARAMETER.sub(r"{\1}", each.path)
        paths.setdefault(path, {})[each.method.lower()] = _described(each)
    paths[f"{PREFIX}/stream"] = {"get": _STREAM}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Fairwarning operator API",
            "version": __version__,
            "description": "No machine goes down without fair warning.",
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(route: Route) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "description": f"Needs the role `{route.role.word}`.",
        "tags": [route.path.split("/")[1]],
        "parameters": _parameters(route),
        "responses": _responses(route),
    }
    if route.body is not None or route.takes_toml:
        described["requestBody"] = _request_body(route)
    return described


def _operation_id(route: Route) -> str:
    words = re.findall(r"[A-Za-z]+", _PARAMETER.sub(r"\1", route.path))
    return route.method.lower() + "".join(word.capitalize() for word in words)


def _parameters(route: Route) -> list[dict[str, Any]]:
    found = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1, "maxLength": 400},
        }
        for name in _PARAMETER.findall(route.path)
    ]
    schema = msgspec.json.schema(route.query)
    properties = schema["$defs"][route.query.__name__]["properties"]
    found += [
        {"name": name, "in": "query", "required": False, "schema": _inlined(each, schema)}
        for name, each in properties.items()
    ]
    if route.method != "GET":
        found.append({"name": "why", "in": "query", "description": "Kept in the history.",
                      "schema": {"type": "string", "maxLength": 1024}})  # fmt: skip
    if route.method == "POST" and not route.is_preview:
        found.append({"name": "Idempotency-Key", "in": "header",
                      "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"}})  # fmt: skip
    return found


def _inlined(schema: Any, whole: Mapping[str, Any]) -> Any:
    """Return the schema with all references replaced by the schemas that they refer to."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            return _inlined(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
        return {name: _inlined(value, whole) for name, value in schema.items()}
    if isinstance(schema, list):
        return [_inlined(each, whole) for each in schema]
    return schema


def _request_body(route: Route) -> dict[str, Any]:
    if route.takes_toml:
        content: dict[str, Any] = {
            "application/toml": {"schema": {"type": "string"}},
            "application/json": {"schema": {"type": "object"}},
        }
    else:
        assert route.body is not None
        content = {"application/json": {"schema": _ref(route.body)}}
    return {"required": not route.is_body_optional, "content": content}


def _responses(route: Route) -> dict[str, Any]:
    problem = {"schema": _ref(ProblemBody)}
    success = {"application/json": {"schema": _ref(route.answer)}}
    if route.stream is not None:
        success["application/x-ndjson"] = {"schema": _ref(FleetLine)}
    return {
        str(route.status): {"description": "Done", "content": success},
        **{
            str(status): {"description": text, "content": {MEDIA_TYPE: problem}}
            for status, text in _STATUSES.items()
        },
    }


def _ref(kind: type) -> dict[str, str]:
    return {"$ref": _REF.format(name=kind.__name__)}
