"""`RR_<TOPIC>__<NAME>` variables, for example `RR_REDIS__URL`."""

import re
from collections.abc import Mapping

import yaml

from gateway.adapters.config.layer import Key, Layer, Problem, Value

PREFIX = "RR_"
NOT_SETTINGS = frozenset({"RR_CONFIG", "RR_DEBUG", "RR_URL", "RR_ADMIN_URL", "RR_TOKEN", "RR_DATA_DIR"})
"""Variables of the commands themselves: no settings, no typing errors."""

# A Kubernetes Service called `rr` makes the kubelet put RR_SERVICE_HOST, RR_PORT_8080_TCP, ... into every pod.
_SERVICE_LINK = re.compile(
    r"RR(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_[A-Z]+)?)?)"
)


def read_environment(environ: Mapping[str, str]) -> Layer:
    """Every RR_ variable becomes a value or a problem; lists and mappings may be written as YAML or JSON."""
    values: dict[Key, Value] = {}
    problems: list[Problem] = []
    for variable in sorted(environ):
        if not variable.startswith(PREFIX) or variable in NOT_SETTINGS:
            continue
        source = f"environment {variable}"
        topic, separator, name = variable.removeprefix(PREFIX).lower().partition("__")
        if not separator:
            if not _SERVICE_LINK.fullmatch(variable):
                problems.append(
                    Problem(variable, "is no setting; write RR_<TOPIC>__<NAME>, like RR_REDIS__URL", source)
                )
            continue
        text = environ[variable]
        try:
            values[topic, name] = Value(yaml.safe_load(text) if text.lstrip()[:1] in ("[", "{") else text, source)
        except yaml.YAMLError:
            problems.append(
                Problem(f"{topic}.{name}", "begins like a list or mapping but is not valid JSON or YAML", source)
            )
    return Layer(values, tuple(problems))
