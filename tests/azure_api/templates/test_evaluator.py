"""What expressions stand for."""

from typing import Any

import pytest

from tests.azure_api.templates.plans import GROUP, NETWORK, SUBSCRIPTION, refusal, value

VALUES: list[tuple[str, Any]] = [
    ("plain", "plain"),
    ("[[not('x')]", "[not('x')]"),
    ("[open", "[open"),
    ("[[open", "[[open"),
    ("['it''s']", "it's"),
    ("[ concat( 'a' , 'b' ) ]", "ab"),
    ("[CONCAT('a', 1, true())]", "a1True"),
    ("[concat(createArray(1), createArray(2, 3))]", [1, 2, 3]),
    ("[-7]", -7),
    ("[format('{0}-{1:D3} {{x}}', 'a', 7)]", "a-007 {x}"),
    ("[toUpper(toLower('aB'))]", "AB"),
    ("[string(createObject('b', 1, 'a', createArray(null())))]", '{"a":[null],"b":1}'),
    ("[string(true())]", "True"),
    ("[int('-12')]", -12),
    ("[bool('TRUE')]", True),
    ("[length('abc')]", 3),
    ("[length(createArray(1, 2))]", 2),
    ("[contains('abc', 'b')]", True),
    ("[contains(createArray(1), true())]", False),
    ("[contains(createObject('One', 1), 'one')]", True),
    ("[empty('')]", True),
    ("[equals(1, true())]", False),
    ("[equals(createArray('a'), createArray('a'))]", True),
    ("[not(false())]", True),
    ("[and(true(), false(), div(1, 0))]", False),
    ("[or(false(), true(), div(1, 0))]", True),
    ("[if(equals('a', 'a'), 'yes', div(1, 0))]", "yes"),
    ("[coalesce(null(), '', 'x')]", ""),
    ("[createObject('a', createObject('b', createArray(5))).a.B[0]]", 5),
    ("[createObject('a b', 1)['a b']]", 1),
    ("[array('a')]", ["a"]),
    ("[union(createArray(1, 2), createArray(2, 3))]", [1, 2, 3]),
    (
        '[union(json(\'{"a": {"b": {"c": 1}}}\'), json(\'{"a": {"b": {"d": 2}}}\'))]',
        {"a": {"b": {"c": 1, "d": 2}}},
    ),
    (
        '[union(json(\'{"a": {"x": 1}, "b": 1}\'), json(\'{"a": {"y": 2}}\'))]',
        {"a": {"x": 1, "y": 2}, "b": 1},
    ),
    ("[intersection(createArray(1, 2), createArray(2, 3))]", [2]),
    ("[first('abc')]", "a"),
    ("[last(createArray(1, 2))]", 2),
    ("[add(1, sub(5, mul(2, 3)))]", 0),
    ("[div(-7, 2)]", -3),
    ("[mod(-7, 2)]", -1),
    ("[min(3, 1, 2)]", 1),
    ("[max(createArray(3, 1))]", 3),
    ("[replace('a-b-c', '-', '')]", "abc"),
    ("[split('a,b;c', createArray(',', ';'))]", ["a", "b", "c"]),
    ("[join(createArray('a', 1), '-')]", "a-1"),
    ("[substring('abcdef', 2, 3)]", "cde"),
    ("[take('abc', 9)]", "abc"),
    ("[skip(createArray(1, 2, 3), 2)]", [3]),
    ("[startsWith('Abc', 'aB')]", True),
    ("[endsWith('abc', 'd')]", False),
    ("[indexOf('abc', 'C')]", 2),
    ("[trim('  a ')]", "a"),
    ("[base64('one')]", "b25l"),
    ("[base64ToString('b25l')]", "one"),
    ("[json('{\"a\": [1, null]}').a]", [1, None]),
    ("[range(3, 2)]", [3, 4]),
    ("[padLeft(7, 3, '0')]", "007"),
    ("[less(1, 2)]", True),
    ("[less(2, 2)]", False),
    ("[lessOrEquals(2, 2)]", True),
    ("[greater(2, 2)]", False),
    ("[greaterOrEquals(2, 2)]", True),
    ("[greaterOrEquals('a', 'b')]", False),
    ("[concat('a', null(), 'b')]", "ab"),
    ("[coalesce(null(), null())]", None),
    ("[bool(0)]", False),
    ("[bool(2)]", True),
    ("[bool('False')]", False),
    ("[int(json('2.9'))]", 2),
    ("[int(' 7 ')]", 7),
    ("[int('-9223372036854775808')]", -(2**63)),
    ("[add(9223372036854775806, 1)]", 2**63 - 1),
    ("[div(7, -2)]", -3),
    ("[div(-7, -2)]", 3),
    ("[range(0, 0)]", []),
    ("[length(range(0, 10000))]", 10_000),
    ("[max(1)]", 1),
    ("[first('')]", ""),
    ("[last(createArray())]", None),
    ("[take('abc', -1)]", ""),
    ("[take(createArray(1, 2), 1)]", [1]),
    ("[skip('abc', -1)]", "abc"),
    ("[skip('abc', 3)]", ""),
    ("[substring('abc', 3)]", ""),
    ("[substring('abc', 1)]", "bc"),
    ("[indexOf('abc', 'd')]", -1),
    ("[lastIndexOf('aBab', 'AB')]", 2),
    ("[contains('abc', 'B')]", False),
    ("[contains(createObject('a', 1), 'b')]", False),
    ("[empty(null())]", True),
    ("[empty(createObject('a', 1))]", False),
    ("[padLeft('abcd', 3)]", "abcd"),
    ("[padLeft('a', 3)]", "  a"),
    ("[format('{0:X4} {0:x} {1:d3}', 255, -7)]", "00FF ff -007"),
    ("[format('{0}', null())]", ""),
    ("[join(createArray(), '-')]", ""),
    ("[union(createObject('a', 1), createObject('A', 2, 'a', 3))]", {"a": 3, "A": 2}),
    (
        "[intersection(createObject('a', 1, 'b', 2), createObject('b', 2, 'a', 3))]",
        {"b": 2},
    ),
    (
        "[intersection(createArray(1, 2, 3), createArray(3, 2), createArray(3, 1))]",
        [3],
    ),
    ("[resourceGroup().location]", "west"),
    ("[subscription().subscriptionId]", SUBSCRIPTION),
    ("[deployment().name]", "first"),
    ("[providers('microsoft.compute', 'virtualMachines').apiVersions[0]]", "2024-11-01"),
    ("[resourceId('Microsoft.Network/virtualNetworks', 'n')]", f"{NETWORK}/virtualNetworks/n"),
    (
        "[resourceId('Microsoft.Network/virtualNetworks/subnets', 'n', 's')]",
        f"{NETWORK}/virtualNetworks/n/subnets/s",
    ),
    (
        "[resourceId('other', 'Microsoft.Network/virtualNetworks', 'n')]",
        f"/subscriptions/{SUBSCRIPTION}/resourceGroups/other/providers/Microsoft.Network"
        "/virtualNetworks/n",
    ),
    (
        "[resourceId('2222', 'other', 'Microsoft.Network/virtualNetworks', 'n')]",
        "/subscriptions/2222/resourceGroups/other/providers/Microsoft.Network/virtualNetworks/n",
    ),
    (
        "[subscriptionResourceId('Microsoft.Compute/things', 't')]",
        f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/things/t",
    ),
    (
        "[concat(resourceId('Microsoft.Network/loadBalancers', 'L'), '/pools/', 'b')]",
        f"{GROUP}/providers/Microsoft.Network/loadBalancers/L/pools/b",
    ),
]


@pytest.mark.parametrize(("expression", "expected"), VALUES, ids=[each for each, _ in VALUES])
def test_an_expression_stands_for_a_value(expression: str, expected: Any) -> None:
    found = value(expression)
    assert found == expected
    assert type(found) is type(expected)


def test_unique_strings_have_13_characters_and_never_change() -> None:
    found = value("[uniqueString('a', 'b')]")
    assert found == "lgzhdlq3xsy5g"
    assert found == value("[UniqueString('a', 'b')]")
    assert found != value("[uniqueString('ab', '')]")


def test_a_guid_depends_on_its_arguments_alone() -> None:
    assert value("[guid('a', 'b')]") == "2d796349-8c7e-55ec-9624-54ece82ed031"


def test_names_of_properties_are_evaluated_too() -> None:
    assert value({"[concat('a', 'b')]": 1}) == {"ab": 1}
    wrong = {"it": {"type": "object", "value": {"[add(1, 2)]": 1}}}
    assert "the name of a property must be a string" in refusal(outputs=wrong)


REFUSALS = [
    ("[frobnicate('x')]", "The template function 'frobnicate' is not valid"),
    ("[contoso.name('x')]", "The template function 'contoso.name' is not valid"),
    ("[concat('a']", "expected ')' and found"),
    ("[concat('a)]", "does not end"),
    ("[concat('a') 'b']", "expected the end"),
    ("[concat]", "expected '('"),
    ("[]", "expected a value"),
    ("[a!b()]", "unexpected character '!'"),
    ("[99999999999999999999]", "too large"),
    ("[add(9223372036854775807, 1)]", "64 bits"),
    ("[add('1', 1)]", "argument 1 must be of type 'Integer' and is of type 'String'"),
    ("[add(1)]", "it takes 2 argument(s) and got 1"),
    ("[if('true', 1, 2)]", "must be of type 'Boolean'"),
    ("[div(1, 0)]", "divide by zero"),
    ("[mod(1, 0)]", "divide by zero"),
    ("[substring('abc', 2, 2)]", "must refer to a location within the string"),
    ("[createArray(1)[1]]", "array index '1' is out of bounds"),
    ("[createArray(1)[-1]]", "array index '-1' is out of bounds"),
    ("[createObject('a', 1).b]", "property 'b' doesn't exist, available properties are 'a'"),
    ("[concat('a').b]", "can't be evaluated on a value of type 'String'"),
    ("[json('{')]", "no JSON"),
    ("[int('one')]", "no whole number"),
    ("[copyIndex()]", "no loop is here"),
    ("[parameters('x')]", "The template parameter 'x' is not found"),
    ("[variables('x')]", "The template variable 'x' is not found"),
    ("[resourceId('Microsoft.Network/virtualNetworks/subnets', 'n')]", "requires '2' resource"),
    ("[resourceId('a', 'b')]", "none of the arguments is a type"),
    ("[reference('nothing')]", "could not find template resource"),
    ("[format('{1}', 'a')]", "no argument for '{1}'"),
    ("[format('{', 'a')]", "brace"),
    ("[format('{0:D3}', 'a')]", "the format 'D' is not supported for this value"),
    ("[format('{0:N2}', 7)]", "the format 'N' is not supported for this value"),
    ("[if(true(), 1)]", "it takes 3 argument(s) and got 2"),
    ("[and(true())]", "it takes at least 2 argument(s) and got 1"),
    ("[or()]", "it takes at least 2 argument(s) and got 0"),
    ("[coalesce()]", "it takes at least 1 argument(s) and got 0"),
    ("[and(true(), 'x')]", "argument 2 must be of type 'Boolean' and is of type 'String'"),
    ("[concat(createArray(1), 'a')]", "all arguments must be arrays if one of them is"),
    ("[createObject('a')]", "names and values in turn"),
    ("[createObject(1, 2)]", "a name must be a string"),
    ("[union(createArray(1), createObject('a', 1))]", "all arguments must be arrays, or all"),
    ("[bool('yes')]", "neither 'true' nor 'false'"),
    ("[less(1, 'a')]", "must be of the same type"),
    ("[int(json('1e30'))]", "does not fit in 64 bits"),
    ("[int('9223372036854775808')]", "does not fit in 64 bits"),
    ("[int('-')]", "no whole number"),
    ("[sub(-9223372036854775807, 2)]", "64 bits"),
    ("[range(0, 10001)]", "between 0 and 10000"),
    ("[range(0, -1)]", "between 0 and 10000"),
    ("[range(9223372036854775807, 1)]", "64 bits"),
    ("[min(createArray())]", "whole numbers"),
    ("[max(1, createArray(2))]", "whole numbers"),
    ("[min(createArray(true()))]", "whole numbers"),
    ("[replace('a', '', 'b')]", "the text to replace is empty"),
    ("[split('a', createArray())]", "1 to 32 delimiters"),
    ("[split('a', createArray(',', ''))]", "1 to 32 delimiters"),
    ("[padLeft('a', 3, 'xy')]", "one character"),
    ("[padLeft('a', -1)]", "between 0 and"),
    ("[padLeft('a', 1048577)]", "between 0 and 1048576"),
    ("[join(createArray(padLeft('a', 600000), padLeft('a', 600000)), '-')]", "characters"),
    ("[base64ToString('?')]", "no base64 of a string"),
    ("[base64ToString('/w==')]", "no base64 of a string"),
    ("[substring('abc', -1, 1)]", "must refer to a location within the string"),
    ("[substring('abc', 4)]", "must refer to a location within the string"),
    ("[createObject('a', 1)[0]]", "can't be evaluated on a value of type 'Object'"),
    ("[createArray(1)[true()]]", "can't be evaluated on a value of type 'Array'"),
    ("[createObject('a', 1).'b']", "found ''b'' at position 21"),
    ("[resourceId('Microsoft.Network//virtualNetworks', 'n', 'm')]", "an empty segment"),
    ("[resourceId('Microsoft.Network/virtualNetworks', '')]", "an empty segment"),
    ("[providers('Contoso.Things')]", "the namespace 'Contoso.Things' is not known"),
    (f"[{'not(' * 33}true(){')' * 33}]", "nested more than 32 levels deep"),
    (f"[json('{'[' * 101}{']' * 101}')]", "nested more than 100 levels deep"),
]


@pytest.mark.parametrize(("expression", "words"), REFUSALS, ids=[each for each, _ in REFUSALS])
def test_what_makes_no_sense_is_refused_and_says_where(expression: str, words: str) -> None:
    message = refusal(outputs={"it": {"type": "object", "value": {"deep": [expression]}}})
    assert words in message
    assert "'it' at 'value.deep.0'" in message
