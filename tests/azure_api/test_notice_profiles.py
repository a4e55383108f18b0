"""Notice and policy in ARM's words."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.notice_profiles import (
    NoticeTerms,
    policy_json,
    read_policy,
    read_terms,
    refuse_newer_members,
    terms_json,
    without_newer_members,
)
from fairwarning.azure_api.paths import resource_path
from fairwarning.azure_api.request import ArmCall
from fairwarning.core.instants import MINUTE_MS
from fairwarning.core.model import Policy
from fairwarning.operator_api.auth import LOCAL

TYPES = ["virtualMachineScaleSets", "virtualMachines", "availabilitySets"]


def _call(version: str, type: str = TYPES[0]) -> ArmCall:
    path = resource_path(f"/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/{type}/n")
    query = {"api-version": version}
    return ArmCall(method="PUT", path=path, query=query, caller=LOCAL, base_url="http://x")


def _profile(**parts: object) -> dict[str, Any]:
    return {"scheduledEventsProfile": parts}


def _terminate(**said: object) -> dict[str, Any]:
    return _profile(terminateNotificationProfile=said)


@pytest.mark.parametrize(
    ("said", "minutes"),
    [
        ({"enable": True, "notBeforeTimeout": "PT5M"}, 5),
        ({"enable": "true", "notBeforeTimeout": "PT900S"}, 15),
        ({"enable": True}, 5),
        ({"enable": True, "notBeforeTimeout": None}, 5),
    ],
)
def test_a_terminate_notice_is_read(said: dict[str, Any], minutes: int) -> None:
    assert read_terms(_terminate(**said)) == NoticeTerms(minutes * MINUTE_MS, None)
    assert read_terms({"virtualMachineProfile": _terminate(**said)}).reimage_notice_ms is None


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"scheduledEventsProfile": None},
        _profile(),
        _terminate(),
        _terminate(notBeforeTimeout="PT10M"),
        _terminate(enable=False, notBeforeTimeout="PT99M"),
        _profile(terminateNotificationProfile=None),
    ],
)
def test_what_is_not_enabled_is_not_told(properties: dict[str, Any]) -> None:
    assert read_terms(properties) == NoticeTerms(None, None)


@pytest.mark.parametrize(
    "properties",
    [
        _terminate(enable=True, notBeforeTimeout="PT4M59S"),
        _terminate(enable=True, notBeforeTimeout="PT15M1S"),
        _terminate(enable=True, notBeforeTimeout="5"),
        _terminate(enable=True, notBeforeTimeout=5),
        _terminate(enable="maybe"),
        _profile(terminateNotificationProfile=[]),
        {"scheduledEventsProfile": "on"},
        _profile(osImageNotificationProfile={"enable": True, "notBeforeTimeout": "PT10M"}),
    ],
)
def test_what_azure_does_not_allow_is_refused(properties: dict[str, Any]) -> None:
    with pytest.raises(ArmError) as refused:
        read_terms(properties)
    assert (refused.value.status, refused.value.failure.code) == (400, "InvalidParameter")


@given(terminate=st.none() | st.integers(5, 15), reimage=st.none() | st.just(15))
def test_what_is_shown_reads_the_same(terminate: int | None, reimage: int | None) -> None:
    terms = NoticeTerms(
        None if terminate is None else terminate * MINUTE_MS,
        None if reimage is None else reimage * MINUTE_MS,
    )
    assert read_terms({"scheduledEventsProfile": terms_json(terms)}) == terms


def test_what_is_off_is_not_shown() -> None:
    assert terms_json(NoticeTerms(None, None)) == {}


def test_a_policy_that_is_not_mentioned_stays() -> None:
    before = Policy(approve_user_reboot=True, approve_all_instances_down=False)
    assert read_policy({}, before) == before
    assert read_policy({"scheduledEventsPolicy": {"userInitiatedRedeploy": None}}, before) == before


def test_an_empty_part_of_a_policy_means_its_default() -> None:
    before = Policy(
        approve_user_reboot=True, approve_user_redeploy=True, approve_all_instances_down=False
    )
    said: dict[str, Any] = {
        "userInitiatedReboot": {},
        "userInitiatedRedeploy": {},
        "allInstancesDown": {},
    }
    assert read_policy({"scheduledEventsPolicy": said}, before) == Policy()


@given(reboot=st.booleans(), redeploy=st.booleans(), down=st.booleans())
def test_a_policy_that_is_shown_reads_the_same(reboot: bool, redeploy: bool, down: bool) -> None:
    policy = Policy(
        approve_user_reboot=reboot, approve_user_redeploy=redeploy, approve_all_instances_down=down
    )
    assert read_policy({"scheduledEventsPolicy": policy_json(policy)}, Policy()) == policy


@pytest.mark.parametrize(
    ("type", "properties", "since", "member"),
    [
        (
            "virtualMachineScaleSets",
            {"virtualMachineProfile": _terminate(enable=False)},
            "2019-03-01",
            "'scheduledEventsProfile' on object of type 'VirtualMachineProfile'",
        ),
        (
            "virtualMachineScaleSets",
            {"virtualMachineProfile": _profile(osImageNotificationProfile={})},
            "2022-11-01",
            "'osImageNotificationProfile' on object of type 'ScheduledEventsProfile'",
        ),
        (
            "virtualMachineScaleSets",
            {"scheduledEventsPolicy": {}},
            "2024-03-01",
            "'scheduledEventsPolicy' on object of type 'VirtualMachineScaleSetProperties'",
        ),
        (
            "virtualMachines",
            {"scheduledEventsPolicy": {}},
            "2024-07-01",
            "'scheduledEventsPolicy' on object of type 'VirtualMachineProperties'",
        ),
        (
            "availabilitySets",
            {"scheduledEventsPolicy": {"allInstancesDown": {}}},
            "2025-04-01",
            "'allInstancesDown' on object of type 'ScheduledEventsPolicy'",
        ),
    ],
)
def test_an_api_version_knows_what_it_knew(
    type: str, properties: dict[str, Any], since: str, member: str
) -> None:
    refuse_newer_members(_call(since, type), properties)
    refuse_newer_members(_call("2026-04-01", type), properties)
    earlier = f"{int(since[:4]) - 1}{since[4:]}" if type != "availabilitySets" else "2024-11-01"
    with pytest.raises(ArmError, match="Could not find member") as refused:
        refuse_newer_members(_call(earlier, type), properties)
    assert (refused.value.status, refused.value.failure.code) == (400, "BadRequest")
    assert member in str(refused.value)


_parts = {
    "scheduledEventsProfile": {
        "terminateNotificationProfile": {"enable": True},
        "osImageNotificationProfile": {"enable": True},
    },
    "scheduledEventsPolicy": {
        "allInstancesDown": {"automaticallyApprove": True},
        "scheduledEventsAdditionalPublishingTargets": {
            "eventGridAndResourceGraph": {"enable": True, "scheduledEventsApiVersion": "x"}
        },
    },
}


@given(year=st.integers(2016, 2027), month=st.integers(1, 12), type=st.sampled_from(TYPES))
def test_whatever_a_version_is_shown_it_may_send_back(year: int, month: int, type: str) -> None:
    call = _call(f"{year}-{month:02}-01", type)
    properties = {**_parts, "virtualMachineProfile": _parts}
    refuse_newer_members(call, without_newer_members(call, properties))
    newest = _call("2030-01-01", type)
    assert without_newer_members(newest, properties) == properties
