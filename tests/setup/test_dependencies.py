"""pyproject.toml is the one list of dependencies; constraints.txt and environment.yml follow it."""

import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
CONDA_NAMES = {
    "torch": "pytorch-cpu",
    "matplotlib": "matplotlib-base",
    "playwright": "playwright-python",
}


def direct() -> dict[str, SpecifierSet]:
    """Every direct dependency, core and extras, with its bounds."""
    lines = [*PROJECT["dependencies"], *(line for extra in EXTRAS.values() for line in extra)]
    return {canonicalize_name(r.name): r.specifier for r in map(Requirement, lines)}


def only_somewhere() -> set[str]:
    """Direct dependencies with an environment marker."""
    lines = [line for extra in EXTRAS.values() for line in extra]
    return {canonicalize_name(r.name) for r in map(Requirement, lines) if r.marker}


def pins() -> dict[str, SpecifierSet]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    listed = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert len({canonicalize_name(r.name) for r in listed}) == len(listed), (
        "a package is pinned twice"
    )
    return {canonicalize_name(r.name): r.specifier for r in listed}


def conda() -> dict[str, SpecifierSet]:
    """What environment.yml lists, under the names of pyproject.toml; pip and Python apart."""
    listed = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    names = {conda_name: name for name, conda_name in CONDA_NAMES.items()}
    packages = {}
    for line in (entry for entry in listed if isinstance(entry, str)):
        name, _, bounds = line.partition(" ")
        packages[names.get(name, name)] = SpecifierSet(bounds)
    del packages["pip"]
    return packages


def test_extras_are_those_the_makefile_installs():
    assert set(EXTRAS) == {"book", "dev"}


@pytest.mark.parametrize("name", direct())
def test_direct_dependency_has_a_lower_bound(name):
    assert any(bound.operator == ">=" for bound in direct()[name])


@pytest.mark.parametrize("name", direct())
def test_direct_dependency_is_pinned_within_its_bounds(name):
    assert name in pins(), f"{name} is not in constraints.txt: run make freeze"
    (pin,) = pins()[name]
    assert pin.version in direct()[name], f"{name}=={pin.version} breaks {direct()[name]}"


def test_pins_are_exact_and_serve_every_build():
    for name, bounds in pins().items():
        (bound,) = bounds
        assert bound.operator == "==", f"{name}{bound} is no exact version"
        assert "+" not in bound.version, f"{name}=={bound.version} names one build; cut the +…"


def test_conda_lists_the_same_packages_with_the_same_bounds():
    """What only one system has cannot stand in the one list for all; a comment there names it."""
    wanted = {name: bounds for name, bounds in direct().items() if name not in only_somewhere()}
    assert conda() == wanted | {"python": SpecifierSet(PROJECT["requires-python"])}
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    assert all(f"{name} {bounds}" in text for name, bounds in direct().items() if name in only_somewhere())


def test_conda_uses_conda_forge_alone_and_installs_the_library():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    assert environment["channels"] == ["conda-forge", "nodefaults"]
    assert environment["dependencies"][-1] == {"pip": ["-e ."]}
