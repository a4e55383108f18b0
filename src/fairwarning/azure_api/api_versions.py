"""Refuses api-versions that have never existed. Pure.

The versions of Microsoft.Compute are listed, because the members of its types depend on them. In
other namespaces, every date since 2014-04-01 counts as a version.
"""

from dataclasses import replace
from datetime import date

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.paths import ResourcePath
from fairwarning.azure_api.regions import REGIONS
from fairwarning.azure_api.request import ArmCall, Json
from fairwarning.azure_api.templates.scope_functions import API_VERSIONS

COMPUTE_VERSIONS = (
    "2015-05-01-preview", "2015-06-15", "2016-03-30", "2016-04-30-preview", "2016-08-30",
    "2017-03-30", "2017-09-01", "2017-12-01", "2018-04-01", "2018-06-01", "2018-09-30",
    "2018-10-01", "2019-03-01", "2019-04-01", "2019-07-01", "2019-11-01", "2019-12-01",
    "2020-05-01", "2020-06-01", "2020-06-30", "2020-09-30", "2020-10-01-preview", "2020-11-01",
    "2020-12-01", "2021-03-01", "2021-04-01", "2021-07-01", "2021-08-01", "2021-10-01",
    "2021-11-01", "2021-12-01", "2022-01-03", "2022-03-01", "2022-03-02", "2022-03-03",
    "2022-04-04", "2022-07-02", "2022-08-01", "2022-08-03", "2022-09-04", "2022-11-01",
    "2023-01-02", "2023-03-01", "2023-04-02", "2023-07-01", "2023-07-03", "2023-09-01",
    "2023-10-02", "2024-03-01", "2024-03-02", "2024-03-03", "2024-07-01", "2024-11-01",
    "2024-11-04", "2025-01-02", "2025-03-03", "2025-04-01", "2025-11-01", "2025-12-03",
    "2026-03-01", "2026-03-02", "2026-03-03", "2026-04-01",
)  # fmt: skip
_LISTED_TYPES = ("availabilitySets", "virtualMachines", "virtualMachineScaleSets")
_FIRST_DAY = date(2014, 4, 1)


def refuse_unknown_version(path: ResourcePath, version: str, location: str, today: date) -> None:
    """Raises ArmError if there is no such version. `location` is the region in the body, if any.

    A version that is newer than this list is accepted: clients may be newer than the server.
    """
    day = _day(version)
    if day is None or not _FIRST_DAY <= day <= today:
        raise ArmError(
            400,
            "InvalidApiVersionParameter",
            f"The api-version '{version[:40]}' is invalid. The supported versions are "
            f"'{', '.join(COMPUTE_VERSIONS[-5:])}' and others.",
        )
    type = path.types[0] if path.types else path.tail
    listed = next((each for each in _LISTED_TYPES if each.lower() == type.lower()), None)
    if path.namespace != "Microsoft.Compute" or listed is None:
        return
    if version.lower() not in COMPUTE_VERSIONS and version[:10] <= COMPUTE_VERSIONS[-1]:
        raise ArmError(
            400,
            "NoRegisteredProviderFound",
            f"No registered resource provider found for location '{location or '*'}' and API "
            f"version '{version}' for type '{listed}'. The supported api-versions are "
            f"'{', '.join(COMPUTE_VERSIONS)}'. The supported locations are "
            f"'{', '.join(REGIONS)}'.",
        )


def call_to(call: ArmCall, path: ResourcePath, method: str, body: Json | None = None) -> ArmCall:
    """Returns a request to another resource, with an api-version that its type has."""
    version = API_VERSIONS.get(path.namespace, call.api_version)
    return replace(call, method=method, path=path, body=body, query={"api-version": version})


def _day(version: str) -> date | None:
    try:
        return date.fromisoformat(version[:10])
    except ValueError:
        return None
