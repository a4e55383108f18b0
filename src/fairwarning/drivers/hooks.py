"""This module calls one hook of the operator: a program or a web service.

A hook gets the same order as a driver of that kind, and also which hook and which try it is.
Programs run in real time even if the server's clock is virtual.
"""

from fairwarning.core.instants import SECOND_MS
from fairwarning.drivers.command import environment
from fairwarning.drivers.orders import order_json
from fairwarning.drivers.programs import run_program
from fairwarning.drivers.web_requests import Message, send
from fairwarning.engine.protocols import Clock, DriverFailed, HookCall, HookResult, Order

_SUCCESS = range(200, 300)


class HookRunner:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def __call__(self, order: Order, call: HookCall) -> HookResult:
        """Calls the hook once, within its time limit."""
        try:
            return await (self._run(order, call) if call.hook.run else self._post(order, call))
        except DriverFailed as failure:
            return HookResult(is_done=False, result=str(failure))

    async def _run(self, order: Order, call: HookCall) -> HookResult:
        hook = call.hook
        told = environment(order) | {
            "FAIRWARNING_HOOK": call.stage,
            "FAIRWARNING_HOOK_NUMBER": str(call.number),
            "FAIRWARNING_TRY": str(call.tried),
            "FAIRWARNING_OUTCOME": call.outcome or "",
            "FAIRWARNING_REASON": call.reason,
        }
        timeout_s = hook.timeout_ms / SECOND_MS
        ended = await run_program(hook.run, _body(order, call), told, timeout_s)
        is_code = ended.code is not None and ended.code >= 0
        return HookResult(
            is_done=ended.code == 0,
            result=f"exit code {ended.code}" if is_code else f"the program {ended.how}",
            output="\n".join(filter(None, (ended.out.strip(), ended.err.strip()))),
        )

    async def _post(self, order: Order, call: HookCall) -> HookResult:
        hook = call.hook
        id = f"{order.key}-{order.attempt}-{call.stage}-{call.number}-{call.tried}"
        reply = await send(
            Message(url=hook.url, id=id, body=_body(order, call)),
            secret_env=hook.secret_env,
            now=self._clock.now(),
            timeout_s=hook.timeout_ms / SECOND_MS,
        )
        return HookResult(
            is_done=reply.status in _SUCCESS,
            result=f"answered {reply.status}",
            output=reply.body.decode(errors="replace"),
        )


def _body(order: Order, call: HookCall) -> bytes:
    return order_json(
        order,
        call.stage,
        hook=call.number,
        **{"try": call.tried},
        outcome=call.outcome,
        reason=call.reason,
    )
