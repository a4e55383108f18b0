"""How samples are found in a page, on a page of our own."""

from pathlib import Path

import pytest

from tools.seeds.samples import Kind, Sample, samples_of

PAGE = b"""# Title
Text, with `curl` in it.

    curl -s http://169.254.169.254/metadata/x?api-version=2017-03-01

    second block of the same
-    a list item

```PowerShell
Get-It
```\x20
```csharp
class A {}
```
More text.
```python
print "\xc3\xa9"

```
```csharp
class B {}
```
> 'http://169.254.169.254/metadata/x?api-version=2019-01-01'
```
{ "StartRequests": {EventId} }
```
```
{ "Events": [] }
```
```
PUT on `/subscriptions`
```
"""


@pytest.fixture
def found(tmp_path: Path) -> list[Sample]:
    (tmp_path / "007_page.txt").write_bytes(PAGE)
    return samples_of(tmp_path)


def test_each_sample_is_found_once_in_the_order_of_the_page(found: list[Sample]) -> None:
    assert [(each.place, each.kind) for each in found] == [
        ("007:4", Kind.CURL),
        ("007:10", Kind.FOREIGN),
        ("007:13", Kind.CSHARP),
        ("007:17", Kind.PYTHON),
        ("007:23", Kind.ENDPOINT),
        ("007:25", Kind.BODY),
        ("007:28", Kind.DOCUMENT),
        ("007:31", Kind.FOREIGN),
    ]


def test_sources_are_the_bytes_of_the_page(found: list[Sample]) -> None:
    sources = {each.kind: each.source for each in found}
    assert sources[Kind.CURL] == b"curl -s http://169.254.169.254/metadata/x?api-version=2017-03-01"
    assert sources[Kind.PYTHON] == b'print "\xc3\xa9"\n\n'
    assert sources[Kind.CSHARP] == b"class A {}\n\nclass B {}\n"


def test_the_first_address_of_the_page_is_its_endpoint(found: list[Sample]) -> None:
    assert {each.endpoint for each in found} == {
        "http://169.254.169.254/metadata/x?api-version=2017-03-01"
    }
