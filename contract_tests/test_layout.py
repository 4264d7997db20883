"""The house stands as drawn: public names, typed packages, import rules that know every room."""

import re
import tomllib
from importlib import import_module
from pprint import pformat
from typing import Any

import pytest

from contract_tests.public_names import PUBLIC_NAMES
from contract_tests.requirements import requirement
from contract_tests.source_tree import PACKAGES, ROOT, files_below, modules_of

PURE_ROOMS = {
    "bridge_mcp.correlation",
    "bridge_mcp.mapping",
    "bridge_mcp.protocol",
    "connectors._jsonrpc",
    "connectors._lines",
    "connectors._sse",
    "harness.contract",
    "harness.policy",
    "harness.turn",
    "harness.wire",
}
ROOMS_BEHIND_THE_PORT = {
    "harness.cli",
    "harness.conversation",
    "harness.local",
    "harness.orchestrator",
    "harness.registry",
    "harness.store",
    "harness.surfaces",
}
# Written in two pieces, or this file would be the first to break the rule.
REGISTRY_HOSTS = [
    ".".join(pair) for pair in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("yarnpkg", "com"))
]


def project_file() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def import_contract(name: str) -> dict[str, Any]:
    [found] = [one for one in project_file()["tool"]["importlinter"]["contracts"] if one["name"] == name]
    return found


def existing_modules() -> set[str]:
    return {module for package in PACKAGES for module in modules_of(package)}


def public_modules() -> list[str]:
    """The three packages and each connector; a connector's private neighbours start with an underscore."""
    connectors = sorted(f"connectors.{entry.parent.name}" for entry in (ROOT / "connectors").glob("[!_]*/__init__.py"))
    return ["bridge_mcp", *connectors, "harness"]


def isort_order(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions: the order that ruff's RUF022 asks for."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


@requirement("layout:public-names-pinned")
def test_public_names_are_exactly_the_pinned_ones() -> None:
    found = {module: list(import_module(module).__all__) for module in public_modules()}
    assert found == PUBLIC_NAMES, f"if this is meant, contract_tests/public_names.py becomes:\n{pformat(found)}"


@pytest.mark.parametrize("module", public_modules())
def test_public_names_are_sorted_and_exist(module: str) -> None:
    package = import_module(module)
    assert list(package.__all__) == sorted(package.__all__, key=isort_order)
    missing = [name for name in package.__all__ if not hasattr(package, name)]
    assert missing == []


@requirement("layout:typed")
@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_is_marked_as_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_directory_with_modules_is_a_package(package: str) -> None:
    directories = {file.parent for file in (ROOT / package).rglob("*.py")}
    assert [one for one in sorted(directories) if not (one / "__init__.py").is_file()] == []


@requirement("layout:import-rules-cover-every-room")
def test_import_rules_name_every_room_that_exists() -> None:
    modules = existing_modules()
    pure = import_contract("no I/O, clock or chance in pure rooms")["source_modules"]
    assert sorted(PURE_ROOMS & modules - set(pure)) == [], "add them to source_modules in pyproject.toml"
    hidden = import_contract("connectors see the port, not the house")["forbidden_modules"]
    assert sorted(ROOMS_BEHIND_THE_PORT & modules - set(hidden)) == [], "add them to forbidden_modules there"


@requirement("packaging:no-registry-host")
def test_no_file_names_a_package_registry() -> None:
    hosts = [host.encode() for host in REGISTRY_HOSTS]
    naming = [
        file.relative_to(ROOT).as_posix()
        for file in files_below(ROOT)
        if any(host in file.read_bytes() for host in hosts)
    ]
    assert naming == []


def test_constraints_are_plain_pins_of_everything_we_ask_for() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9.+!]+", pin)] == []

    project = project_file()["project"]
    asked = [project["dependencies"], *project["optional-dependencies"].values()]
    names = {distribution_name(requested) for group in asked for requested in group}
    assert sorted(names - {distribution_name(pin) for pin in pins}) == []


def distribution_name(requested: str) -> str:
    return re.split(r"[\[<>=~! ]", requested, maxsplit=1)[0].lower().replace("_", "-")
