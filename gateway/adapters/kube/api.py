"""The API server as ports.Pods: one client of `kubernetes.aio`, whose own Watch is not used.

That one reads with the default configuration, and answers a 410 by watching on from the version that has expired.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import yaml
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration, CoreV1Api, DiscoveryV1Api
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.config.config_exception import ConfigException

from gateway.adapters.kube.reading import MAX_BYTES, Lines, failure, malformed, read_change, read_listing
from gateway.ports.pods import AwayReason, Listing, PodsAway, SliceChange
from gateway.settings import ClusterSettings

CALL_SECONDS: Final = 10.0
SILENT_SECONDS: Final = 150.0
"""An API server sends a bookmark each minute: one that says nothing for so long is dead, or its connection is."""
SERVICE_LABEL: Final = "kubernetes.io/service-name"
COST_ANNOTATION: Final = "controller.kubernetes.io/pod-deletion-cost"
MERGE_PATCH: Final = "application/merge-patch+json"
_NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class KubePods:
    """One per gateway; logs in when it is first asked."""

    def __init__(self, settings: ClusterSettings, pod: str, silent_seconds: float = SILENT_SECONDS) -> None:
        self._settings = settings
        self._pod = pod
        self._silent_seconds = silent_seconds
        self._client: ApiClient | None = None
        self._namespace = settings.namespace

    async def endpoints(self) -> Listing:
        with _told():
            async with asyncio.timeout(CALL_SECONDS), self._slices({}) as response:
                return read_listing(await _whole(response))

    @asynccontextmanager
    async def watch(self, version: str, seconds: float) -> AsyncIterator[AsyncIterator[SliceChange]]:
        options = {
            "watch": True,
            "allow_watch_bookmarks": True,
            "resource_version": version,
            "timeout_seconds": int(seconds),
            "_request_timeout": seconds + CALL_SECONDS,
        }
        with _told():
            async with self._slices(options) as response, aclosing(self._changes(response)) as changes:
                yield changes

    async def set_deletion_cost(self, cost: int) -> None:
        with _told():
            async with asyncio.timeout(CALL_SECONDS):
                client, namespace = await self._log_in()
                body = {"metadata": {"annotations": {COST_ANNOTATION: str(cost)}}}
                response = await CoreV1Api(client).patch_namespaced_pod_without_preload_content(
                    self._pod, namespace, body, _content_type=MERGE_PATCH, _request_timeout=CALL_SECONDS
                )
                async with response:
                    await _check(response)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()  # type: ignore[no-untyped-call]
            self._client = None

    @asynccontextmanager
    async def _slices(self, options: dict[str, Any]) -> AsyncIterator[aiohttp.ClientResponse]:
        """The response to a list, or to a watch; its body is not read yet."""
        async with asyncio.timeout(CALL_SECONDS):
            client, namespace = await self._log_in()
            label = f"{SERVICE_LABEL}={self._settings.service}"
            options = {"_request_timeout": CALL_SECONDS, **options}
            response = await DiscoveryV1Api(client).list_namespaced_endpoint_slice_without_preload_content(
                namespace, label_selector=label, **options
            )
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await _check(response)
            yield response
        finally:
            response.close()  # a watch has no end that could be read up to

    async def _changes(self, response: aiohttp.ClientResponse) -> AsyncGenerator[SliceChange, None]:
        lines = Lines()
        while True:
            async with asyncio.timeout(self._silent_seconds):
                data = await response.content.readany()
            if not data:
                return
            for line in lines.feed(data):
                change = read_change(line)
                if change is not None:
                    yield change

    async def _log_in(self) -> tuple[ApiClient, str]:
        if self._client is None:
            # The API server is next door, whatever proxy leads out of the cluster.
            configuration = Configuration(client_session_kwargs={"trust_env": False})
            # Python 3.13 insists on fields that the CAs of many clusters lack; the chain is verified all the same.
            configuration.disable_strict_ssl_verification = True
            file = self._settings.kubeconfig
            if file is None:
                config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
            else:
                await _load_file(file, configuration)
            self._namespace = self._namespace or _own_namespace()
            self._client = ApiClient(configuration)
        return self._client, self._namespace


async def _load_file(file: Path, configuration: Configuration) -> None:
    """Raises ConfigException. Nothing of the file is in its text: there are secrets in it."""
    try:
        await config.load_kube_config(  # type: ignore[no-untyped-call]
            str(file), client_configuration=configuration, persist_config=False
        )
    except (yaml.YAMLError, LookupError, TypeError, ValueError, AttributeError) as exc:  # whatever it stumbles over
        raise ConfigException(f"{file} is no kubeconfig ({type(exc).__name__})") from exc


def _own_namespace() -> str:
    try:
        return _NAMESPACE_FILE.read_text(encoding="utf-8").strip()
    except OSError:
        return "default"


@contextmanager
def _told() -> Iterator[None]:
    """What the client raises, in the words of the port."""
    try:
        yield
    except ConfigException as exc:
        raise PodsAway(AwayReason.NO_ACCOUNT, str(exc)) from exc
    except ApiException as exc:
        raise failure(exc.status or 500, b"") from exc
    except (aiohttp.ClientError, OSError) as exc:  # a TimeoutError is an OSError
        raise PodsAway(AwayReason.UNREACHABLE, type(exc).__name__) from exc
    except (ValueError, TypeError, LookupError, AttributeError) as exc:
        # Whatever the package stumbles over, a gateway goes on without it.
        raise malformed(type(exc).__name__) from exc


async def _check(response: aiohttp.ClientResponse) -> None:
    """Raises PodsAway, Expired unless it succeeded."""
    if not 200 <= response.status < 300:
        raise failure(response.status, await response.content.read(MAX_BYTES), response.headers.get("Retry-After"))


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > MAX_BYTES:
            raise malformed(f"a list of more than {MAX_BYTES} bytes")
    return b"".join(parts)


__all__ = ["CALL_SECONDS", "COST_ANNOTATION", "SERVICE_LABEL", "SILENT_SECONDS", "KubePods"]
