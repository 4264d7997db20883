"""Which policy is in force: `--policy`, else the project's, else the user's, else the restrictive default."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.cli.configuration import Configuration, read_toml, toml_of
from harness.cli.trust import is_trusted
from harness.contract.delegation import RequestPolicy
from harness.errors import ConfigError
from harness.policy import Layer, layered, policy_of

PROJECT_FILE = Path(".harness") / "policy.toml"


@dataclass(frozen=True)
class PolicyInForce:
    """The policy, and what a person should know about where it comes from."""

    policy: RequestPolicy
    is_configured: bool
    """False where nobody said anything: the restrictive default."""
    remarks: tuple[str, ...] = ()


def policy_in_force(policy_file: Path | None, configuration: Configuration, directory: Path) -> PolicyInForce:
    """The layers of this directory as one policy.

    Raises:
        ConfigError: a policy file that cannot be used.
    """
    layers: list[Layer] = []
    if policy_file is not None:
        layers.append(Layer(policy_of(read_toml(policy_file), str(policy_file)), str(policy_file)))
    project = project_layer(directory)
    if project is not None:
        layers.append(project)
    if configuration.policy is not None:
        layers.append(Layer(configuration.policy, str(configuration.file)))
    remarks = [
        f"{layer.label} only denies and asks: 'harness policy trust {directory}' lets its allow rules and mode count"
        for layer in layers
        if layer.is_held_back and policy_file is None
    ]
    return PolicyInForce(layered(layers), bool(layers), tuple(remarks))


def project_layer(directory: Path) -> Layer | None:
    """The policy that a project brings; its bytes are read once, so that what is trusted is what is used."""
    path = directory / PROJECT_FILE
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}", file=str(path)) from error
    return Layer(policy_of(toml_of(data, path), str(path)), str(path), is_trusted(directory, data))
