"""Parameters: what a template declares, and what is given for it."""

from typing import Any

import pytest

from tests.azure_api.templates.plans import plan, refusal, value

STRING = {"type": "string"}


def test_what_is_given_comes_before_the_default_and_is_no_expression() -> None:
    parameters = {"size": {"type": "string", "defaultValue": "small"}}
    assert value("[parameters('SIZE')]", parameters=parameters) == "small"
    given = {"Size": {"value": "[concat('a')]"}}
    assert value("[parameters('size')]", parameters=parameters, given=given) == "[concat('a')]"


def test_a_default_may_depend_on_other_parameters() -> None:
    parameters = {
        "long": {"type": "string", "defaultValue": "[concat(parameters('short'), 'er')]"},
        "short": {"type": "string", "defaultValue": "small"},
    }
    assert value("[parameters('long')]", parameters=parameters) == "smaller"


@pytest.mark.parametrize(
    ("declared", "given", "words"),
    [
        ({"a": STRING}, {}, "The value for the template parameter 'a' is not provided"),
        (
            {"a": STRING},
            {"b": {"value": 1}},
            "The template parameters 'b' in the parameters file are not valid; they are not "
            "present in the original template",
        ),
        (
            {"a": STRING},
            {"a": {"value": 1}},
            "Expected a value of type 'String, Uri', but received a value of type 'Integer'",
        ),
        ({"a": {"type": "int"}}, {"a": {"value": True}}, "received a value of type 'Boolean'"),
        ({"a": {"type": "object"}}, {"a": {"value": []}}, "received a value of type 'Array'"),
        (
            {"a": {"type": "string", "allowedValues": ["x", "y"]}},
            {"a": {"value": "z"}},
            "The parameter value is not part of the allowed value(s): 'x,y'",
        ),
        ({"a": {"type": "int", "minValue": 3}}, {"a": {"value": 2}}, "must be at least '3'"),
        ({"a": {"type": "int", "maxValue": 3}}, {"a": {"value": 4}}, "must be at most '3'"),
        ({"a": {"type": "string", "minLength": 3}}, {"a": {"value": "ab"}}, "at least '3'"),
        ({"a": {"type": "array", "maxLength": 1}}, {"a": {"value": [1, 2]}}, "at most '1'"),
        ({"a": {"type": "int", "defaultValue": "1"}}, {}, "received a value of type 'String'"),
        ({"a": {"type": "text"}}, {}, "it needs a type, which is one of string"),
        ({"a": STRING}, {"a": "plain"}, "write it as"),
        ({"a": STRING}, {"a": {"reference": {}}}, "key vault"),
        ({"a": STRING}, [], None),
        ({"a": {"type": "string", "maxLength": 2}}, {"a": {"value": "abc"}}, "at most '2'"),
        (
            {"a": {"type": "array", "allowedValues": ["x", "y"]}},
            {"a": {"value": ["x", "z"]}},
            "not part of the allowed value(s)",
        ),
        ({f"p{n}": STRING for n in range(257)}, {}, "at most 256 parameters; this has 257"),
    ],
)
def test_what_does_not_fit_is_refused_in_azures_words(
    declared: Any, given: Any, words: str | None
) -> None:
    message = refusal(parameters=declared, given=given)
    assert (words or "is not provided") in message
    assert message.startswith("Deployment template validation failed: '")


@pytest.mark.parametrize(
    ("declared", "given"),
    [
        ({"type": "int", "minValue": 3}, 3),
        ({"type": "int", "maxValue": 3}, 3),
        ({"type": "string", "minLength": 2}, "ab"),
        ({"type": "string", "maxLength": 2}, "ab"),
        ({"type": "array", "minLength": 1, "maxLength": 1}, [1]),
    ],
)
def test_a_value_at_its_bound_is_allowed(declared: Any, given: Any) -> None:
    found = value("[parameters('a')]", parameters={"a": declared}, given={"a": {"value": given}})
    assert found == given


@pytest.mark.parametrize("kind", ["secureString", "secureObject"])
def test_a_secret_is_in_no_refusal(kind: str) -> None:
    declared = {"a": {"type": kind, "allowedValues": ["x"], "minLength": 50}}
    secret = "hunter2" if kind == "secureString" else {"password": "hunter2"}
    assert "hunter2" not in refusal(parameters=declared, given={"a": {"value": secret}})


def test_parameters_are_shown_without_secrets() -> None:
    declared = {"Password": {"type": "securestring"}, "size": {"type": "int", "defaultValue": 3}}
    found = plan(parameters=declared, given={"password": {"value": "hunter2"}})
    assert found.parameters == {
        "password": {"type": "SecureString"},
        "size": {"type": "Int", "value": 3},
    }


@pytest.mark.parametrize(
    ("declared", "given"),
    [
        ({"type": "int", "minValue": 3, "maxValue": 3}, 3),
        ({"type": "string", "minLength": 2, "maxLength": 2}, "ab"),
        ({"type": "array", "allowedValues": ["x", "y"]}, ["y", "x"]),
        ({"type": "array", "allowedValues": [["x"], ["y"]]}, ["y"]),
        ({"type": "array", "allowedValues": ["x"]}, []),
        ({"type": "object", "maxLength": 0}, {"a": 1}),
    ],
)
def test_what_is_just_allowed_is_taken(declared: dict[str, Any], given: Any) -> None:
    found = value("[parameters('a')]", parameters={"a": declared}, given={"a": {"value": given}})
    assert found == given
