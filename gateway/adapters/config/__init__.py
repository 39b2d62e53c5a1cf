"""Reads settings from a YAML file, the environment and flags, weak to strong, and knows where each value came from."""

from gateway.adapters.config.environment import read_environment
from gateway.adapters.config.load import LoadedSettings, SettingsError, load_settings
from gateway.adapters.config.reference import Described, describe_settings
from gateway.adapters.config.show import Effective, effective_settings

__all__ = [
    "Described",
    "Effective",
    "LoadedSettings",
    "SettingsError",
    "describe_settings",
    "effective_settings",
    "load_settings",
    "read_environment",
]
