"""What a stranger gets: the wheel of this clone, installed where nothing else is."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from contract_tests.requirements import requirement
from contract_tests.source_tree import PACKAGES, ROOT, copy_source, files_below

pytestmark = pytest.mark.packaging

# Generous, for a slow network: the extra brings a CLI of some 80 MB.
INSTALL_TIMEOUT_SECONDS = 300
COMMAND_TIMEOUT_SECONDS = 120
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


class Environment:
    """A virtual environment that holds only what was installed into it. It has no pip: ours works on it.

    `system_path` is what its programs find on PATH behind the environment's own ones.
    """

    def __init__(self, directory: Path, system_path: str = "") -> None:
        self.directory = directory
        self._home = directory / "home"
        self._home.mkdir(parents=True)
        self._bin = directory / "venv" / "bin"
        self._path = f"{self._bin}{system_path}"
        run([sys.executable, "-m", "venv", "--without-pip", str(directory / "venv")])

    def install(self, requested: str) -> None:
        python, constraints = str(self._bin / "python"), str(ROOT / "constraints.txt")
        command = [*PIP, "--python", python, "install", "--quiet", "--constraint", constraints, requested]
        run(command, timeout=INSTALL_TIMEOUT_SECONDS)

    def call(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of its programs as on a fresh machine: an empty home, no settings, no keys."""
        return subprocess.run(
            [str(self._bin / program), *arguments],
            cwd=self._home,
            env={"PATH": self._path, "HOME": str(self._home), "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_SECONDS,
            check=False,
        )


def run(command: list[str], timeout: float = COMMAND_TIMEOUT_SECONDS) -> None:
    finished = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False
    )
    assert finished.returncode == 0, finished.stdout


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy to build from, so that nothing an earlier build left behind gets in."""
    return copy_source(tmp_path_factory.mktemp("source") / "clone")


@pytest.fixture(scope="session")
def written(clone: Path) -> set[str]:
    """The files of the three packages, listed before the build adds its own."""
    return {file.relative_to(clone).as_posix() for package in PACKAGES for file in files_below(clone / package)}


@pytest.fixture(scope="session")
def wheel(clone: Path, written: set[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert written, "an empty clone makes an empty wheel"
    target = tmp_path_factory.mktemp("wheel")
    run([*PIP, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(target), str(clone)], INSTALL_TIMEOUT_SECONDS)
    [built] = target.iterdir()
    return built


@pytest.fixture(scope="session")
def alone(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Only the wheel, and a PATH on which no CLI can lie about."""
    environment = Environment(tmp_path_factory.mktemp("alone"))
    environment.install(str(wheel))
    return environment


@pytest.fixture(scope="session")
def with_claude(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    environment = Environment(tmp_path_factory.mktemp("with_claude"), system_path=":/usr/bin:/bin")
    environment.install(f"level2-harness[claude] @ {wheel.as_uri()}")
    return environment


@requirement("packaging:wheel:three-packages")
def test_wheel_holds_the_three_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == set(PACKAGES)


@requirement("packaging:wheel:three-packages")
def test_wheel_holds_every_file_of_the_packages(wheel: Path, written: set[str]) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    assert sorted(written - packed) == [], "a kind of file that package-data in pyproject.toml does not name"


@requirement("packaging:wheel:runs-alone")
def test_installed_alone_the_command_tells_its_version(alone: Environment, wheel: Path) -> None:
    told = alone.call("harness", "--version")
    assert told.returncode == 0, told.stderr
    assert wheel.name.split("-")[1] in told.stdout


@requirement("packaging:wheel:runs-alone")
def test_installed_alone_all_three_packages_import(alone: Environment) -> None:
    program = "import bridge_mcp, connectors, harness; [getattr(harness, name) for name in harness.__all__]"
    imported = alone.call("python", "-I", "-W", "error", "-c", program)
    assert imported.returncode == 0, imported.stderr


@requirement("packaging:wheel:runs-alone")
def test_installed_alone_the_demo_names_the_line_that_installs_the_extra(alone: Environment) -> None:
    refused = alone.call("harness", "demo")
    assert refused.returncode == 3, refused.stderr
    assert "pip install 'level2-harness[claude]'" in refused.stderr
    assert "Traceback" not in refused.stderr


@requirement("packaging:wheel:demo-with-extra")
def test_installed_with_the_extra_the_demo_passes(with_claude: Environment) -> None:
    shown = with_claude.call("harness", "demo")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    # A demo that shows nothing passes too easily: it names the real program that the extra brought.
    assert f"{with_claude.directory}/" in shown.stdout
    assert "_bundled/claude" in shown.stdout
    assert "scripted" in shown.stdout
