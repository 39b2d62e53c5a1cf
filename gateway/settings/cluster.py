"""What a gateway does with the API server of the Kubernetes that it runs on."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from gateway.settings.topic import Topic

_Name = Annotated[str, Field(max_length=253, pattern=r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$")]


class ClusterSettings(Topic):
    """The part on Kubernetes (docs/kubernetes.md). Membership itself is in Redis, with or without it."""

    kubernetes: bool = False
    """Watch the Service's EndpointSlices, drain once the own pod is being deleted, write its deletion cost. Off, the
    client is never loaded: that costs half a second and 60 MB."""
    service: _Name = ""
    """Name of the Service in front of the gateways; needed with `cluster.kubernetes`."""
    namespace: _Name = ""
    """Of the Service and the pod. Empty: the one of the pod's service account."""
    pod_name: _Name = ""
    """`metadata.name` from the downward API. Empty: the host name, which is the pod's name as a rule."""
    pod_uid: str = Field("", max_length=64, pattern=r"^[A-Za-z0-9-]*$")
    """`metadata.uid` from the downward API: tells the pod from the one before that had its name (StatefulSet)."""
    pod_deletion_cost: bool = True
    """Write `controller.kubernetes.io/pod-deletion-cost`, so that a scale-in takes the pod with the fewest runs."""
    deletion_cost_seconds: float = Field(60, ge=1)
    """Between two writes of it: each is a change of the pod that the whole control plane sees."""
    kubeconfig: Path | None = None
    """For a gateway outside a pod, as in development. Empty: the pod's service account."""

    @model_validator(mode="after")
    def _check_service(self) -> Self:
        if self.kubernetes and not self.service:
            raise ValueError(
                "cluster.kubernetes needs cluster.service: the name of the Service in front of the gateways"
            )
        return self


__all__ = ["ClusterSettings"]
