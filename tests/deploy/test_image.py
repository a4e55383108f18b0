"""The image is built from what the Dockerfile copies, and from nothing else. No image is built."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text().splitlines()
PACKAGE = ROOT / "packages" / "client"


def test_the_build_gets_every_file_that_the_package_is_made_of() -> None:
    copied = [ROOT / line.split()[1] for line in DOCKERFILE if line.startswith("COPY ")]
    assert copied
    wheel = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["tool"]["hatch"]["build"][
        "targets"
    ]["wheel"]
    named = [PACKAGE, *(PACKAGE / each for each in wheel["force-include"])]
    named += [PACKAGE / each for each in wheel["extra-metadata"]]
    for each in named:
        assert any(each.resolve().is_relative_to(given) for given in copied), each


def test_kubectl_is_the_one_of_the_platform_that_is_built_for() -> None:
    """A default would count for more than what the builder says."""
    assert "ARG TARGETARCH" in DOCKERFILE
    assert any("${TARGETARCH}/kubectl" in line for line in DOCKERFILE)
