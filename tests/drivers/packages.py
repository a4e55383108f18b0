"""Packages with plug-ins, installed in a folder of their own as pip would do it."""

import sys
from importlib.metadata import EntryPoint, distributions
from pathlib import Path

import pytest

from fairwarning.drivers import plugins


def write_package(folder: Path, name: str, text: str, **points: str) -> None:
    """Writes a package with one module and its entry points, each as MODULE:CLASS."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(text)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    project = name.replace("_", "-")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project}\nVersion: 1.0\n")
    lines = [f"{driver} = {where}" for driver, where in points.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{plugins.GROUP}]", *lines, ""]))


def install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, **points: str
) -> list[EntryPoint]:
    """Installs a package for the length of a test, and returns its entry points."""
    write_package(folder, name, text, **points)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)
    found = [each for dist in distributions(path=[str(folder)]) for each in dist.entry_points]
    assert found
    return found
