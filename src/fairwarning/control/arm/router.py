"""From a path to its handler. The tables are the handlers' own; this only looks them up."""

from collections.abc import Iterable
from dataclasses import replace

from fairwarning.control.arm.call import Arm, ArmCall, Handler, Reply, Routes
from fairwarning.control.arm.errors import ArmError
from fairwarning.control.arm.kept_groups import needed, refuse_going
from fairwarning.control.arm.places import subscription_spelled

_GROUP = "microsoft.resources/subscriptions/resourcegroups"


class Router:
    def __init__(self, tables: Iterable[Routes]) -> None:
        self._handlers: dict[tuple[str, str, str], Handler] = {}
        for table in tables:
            for route, handler in table.items():
                assert route not in self._handlers, f"{route} is routed twice"
                self._handlers[route] = handler
        self._types = {key for _, key, _ in self._handlers}

    async def answer(self, arm: Arm, call: ArmCall) -> Reply:
        """Raises ArmError, Refused, Problem or StoreDown."""
        handler = self._handler(call)
        return await handler(arm, await _spelled(arm, call))

    def _handler(self, call: ArmCall) -> Handler:
        path = call.path
        method = "GET" if call.method == "HEAD" else call.method
        every = f"{path.namespace.lower()}/*"
        for key in (path.key, every):
            for route in ((call.method, key, path.tail), (method, key, path.tail)):
                if route in self._handlers:
                    return self._handlers[route]
        others = {m for m, k, t in self._handlers if k in (path.key, every) and t == path.tail}
        if others:
            raise ArmError(
                405,
                "MethodNotAllowed",
                f"The method {call.method} is not supported here; use {', '.join(sorted(others))}.",
                headers={"Allow": ", ".join(sorted(others))},
            )
        if path.types and path.tail and path.key in self._types:
            raise ArmError(
                404,
                "InvalidAction",
                f"The action '{path.tail}' is not supported on resource type '{path.type}'.",
            )
        if not any(key.split("/")[0] == path.namespace.lower() for key in self._types):
            raise ArmError(
                404,
                "InvalidResourceNamespace",
                f"The resource namespace '{path.namespace}' is invalid.",
            )
        raise ArmError(
            404,
            "InvalidResourceType",
            f"The resource type '{'/'.join((*path.types, path.tail)).strip('/')}' could not be "
            f"found in the namespace '{path.namespace}' for api version '{call.api_version}'.",
        )


async def _spelled(arm: Arm, call: ArmCall) -> ArmCall:
    """With subscription and group as they are really spelled. They must exist."""
    path = call.path
    if not path.subscription:
        return call
    subscription = subscription_spelled(arm, path.subscription)
    path = replace(path, subscription=subscription)
    if path.group and path.key != _GROUP:
        group = await needed(arm, subscription, path.group)
        if call.method in ("PUT", "PATCH"):
            refuse_going(group)
        path = replace(path, group=group.name)
    if path.parent is not None:
        parent = replace(path.parent, subscription=subscription, group=path.group)
        path = replace(path, parent=parent)
    return replace(call, path=path)
