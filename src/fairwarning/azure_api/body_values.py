"""Reads values from request bodies that are not validated yet.

A missing value is returned as an empty one. A value of the wrong type raises ArmError with the
message that Azure uses.
"""

import re

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.request import Json

_IGNORED = frozenset(
    {"id", "name", "type", "etag", "apiversion", "dependson", "copy", "condition", "comments"}
)
"""Members that repeat the path (such as the id), or that have a meaning only in a template."""


_RESERVED = re.compile(r"[<>%&\\?/\x00-\x1f\x7f]")
TAGS_MAX = 50  # Azure has the same limits for tags.
TAG_NAME_CHARS_MAX = 512
TAG_VALUE_CHARS_MAX = 256


def resource_members(body: Json | None) -> Json:
    """Returns the members of a body that describe the resource itself."""
    return {key: value for key, value in (body or {}).items() if key.lower() not in _IGNORED}


def object_at(body: Json, *keys: str) -> Json:
    """Returns the object at these keys. It is empty if it is missing or null.

    Raises ArmError if it is not an object.
    """
    found: object = body
    for number, key in enumerate(keys):
        found = found.get(key) if isinstance(found, dict) else found
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise wrong_kind(".".join(keys[: number + 1]), "an object")
    assert isinstance(found, dict)
    return found


def objects_at(body: Json, *keys: str) -> list[Json]:
    """Returns the list of objects at these keys. It is empty if it is missing or null.

    Raises ArmError if it is not a list of objects.
    """
    found = object_at(body, *keys[:-1]).get(keys[-1])
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise wrong_kind(".".join(keys), "a list of objects")
    return found


def text_at(body: Json, *keys: str) -> str:
    """Returns the text at these keys. It is empty if it is missing or null.

    Raises ArmError if it is not a text.
    """
    found = object_at(body, *keys[:-1]).get(keys[-1])
    if found is None:
        return ""
    if not isinstance(found, str):
        raise wrong_kind(".".join(keys), "a string")
    return found


def tags_of(body: Json) -> dict[str, str]:
    tags = object_at(body, "tags")
    for name, value in tags.items():
        if not isinstance(value, str):
            raise wrong_kind(f"tags.{name[:100]}", "a string")
        if len(name) > TAG_NAME_CHARS_MAX or len(value) > TAG_VALUE_CHARS_MAX:
            raise _bad_tags(
                f"the tag '{name[:40]}' is too long; a name has at most {TAG_NAME_CHARS_MAX} "
                f"characters and a value {TAG_VALUE_CHARS_MAX}"
            )
    if len(tags) > TAGS_MAX:
        raise _bad_tags(f"there are {len(tags)} tags; a resource has at most {TAGS_MAX}")
    return dict(tags)


def refuse_tag_names(body: Json | None) -> None:
    """Raises ArmError if a request has a tag whose name has a reserved character."""
    tags = (body or {}).get("tags")
    if not isinstance(tags, dict):
        return
    bad = [name[:100] for name in tags if _RESERVED.search(name)]
    if bad:
        raise ArmError(
            400,
            "InvalidTagNameCharacters",
            f"The tag names '{','.join(bad[:5])}' have reserved characters '<,>,%,&,\\,?,/' or "
            "control characters.",
        )


def _bad_tags(why: str) -> ArmError:
    return ArmError(400, "InvalidRequestContent", f"The tags are invalid: {why}.", target="tags")


def wrong_kind(where: str, wanted: str) -> ArmError:
    return ArmError(
        400,
        "InvalidRequestFormat",
        f"Cannot parse the request: '{where}' must be {wanted}.",
        target=where,
    )


def location_of(body: Json) -> str:
    """Returns the location in the form `westeurope`, even if the body has `West Europe`.

    Raises ArmError if the body has no location.
    """
    text = text_at(body, "location").replace(" ", "").lower()
    if not text:
        raise ArmError(
            400, "LocationRequired", "The location property is required for this definition."
        )
    return text


def refuse_moved(name: str, group: str, before: str, wanted: str) -> None:
    if before.replace(" ", "").lower() != wanted:
        raise ArmError(
            409,
            "InvalidResourceLocation",
            f"The resource '{name}' already exists in location '{before}' in resource group "
            f"'{group}'. A resource with the same name cannot be created in location "
            f"'{wanted[:100]}'. Please select a new resource name.",
        )
