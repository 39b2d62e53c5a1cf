"""The API server of Kubernetes, by `kubernetes.aio`. Only gateway.app.pod_side imports it, when it is wanted."""

from gateway.adapters.kube.api import KubePods

__all__ = ["KubePods"]
