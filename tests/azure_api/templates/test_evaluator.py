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
]


@pytest.mark.parametrize(("expression", "words"), REFUSALS, ids=[each for each, _ in REFUSALS])
def test_what_makes_no_sense_is_refused_and_says_where(expression: str, words: str) -> None:
    message = refusal(outputs={"it": {"type": "object", "value": {"deep": [expression]}}})
    assert words in message
    assert "'it' at 'value.deep.0'" in message
