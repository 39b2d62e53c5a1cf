"""Everything an operator can set: frozen, by topic, each default with its reason.

Read once, by gateway.adapters.config; a class gets its own slice (`Hub(settings.limits)`), never the whole.
"""

from typing import Self

from pydantic import model_validator

from gateway.settings.admission import AdmissionSettings
from gateway.settings.append import AppendSettings
from gateway.settings.auth import AuthSettings, KeySettings
from gateway.settings.cluster import ClusterSettings
from gateway.settings.exchange import (
    AskSettings,
    InboxSettings,
    InputSettings,
    KeptSettings,
    OrderSettings,
    OutboxSettings,
)
from gateway.settings.hooks import HookSettings, HooksSettings
from gateway.settings.media import MediaSettings
from gateway.settings.quality import QualitySettings
from gateway.settings.quotas import QuotaSettings, TenantQuotas
from gateway.settings.rebalance import RebalanceSettings
from gateway.settings.redis import RedisSettings, hidden_url
from gateway.settings.routing import RoutingSettings
from gateway.settings.runs import RunSettings
from gateway.settings.segments import SegmentSettings
from gateway.settings.server import LogSettings, ReadinessSettings, ServerSettings, is_loopback, problems_of_exposure
from gateway.settings.sizes import LimitSettings, RetentionSettings
from gateway.settings.timing import BusSettings, DrainSettings, LivenessSettings, MemberSettings, RouteSettings
from gateway.settings.tls import TlsSettings
from gateway.settings.topic import Topic
from gateway.settings.webhooks import Receiver, WebhookSettings


class Settings(Topic):
    """All topics. `Settings()` is what an empty configuration means."""

    server: ServerSettings = ServerSettings()
    tls: TlsSettings = TlsSettings()
    admission: AdmissionSettings = AdmissionSettings()
    redis: RedisSettings = RedisSettings()
    append: AppendSettings = AppendSettings()
    auth: AuthSettings = AuthSettings()
    retention: RetentionSettings = RetentionSettings()
    limits: LimitSettings = LimitSettings()
    routes: RouteSettings = RouteSettings()
    liveness: LivenessSettings = LivenessSettings()
    bus: BusSettings = BusSettings()
    members: MemberSettings = MemberSettings()
    drain: DrainSettings = DrainSettings()
    rebalance: RebalanceSettings = RebalanceSettings()
    cluster: ClusterSettings = ClusterSettings()
    quality: QualitySettings = QualitySettings()
    webhooks: WebhookSettings = WebhookSettings()
    routing: RoutingSettings = RoutingSettings()
    readiness: ReadinessSettings = ReadinessSettings()
    log: LogSettings = LogSettings()
    hooks: HooksSettings = HooksSettings()
    runs: RunSettings = RunSettings()
    segments: SegmentSettings = SegmentSettings()
    order: OrderSettings = OrderSettings()
    kept: KeptSettings = KeptSettings()
    asks: AskSettings = AskSettings()
    input: InputSettings = InputSettings()
    outbox: OutboxSettings = OutboxSettings()
    inbox: InboxSettings = InboxSettings()
    quotas: QuotaSettings = QuotaSettings()
    media: MediaSettings = MediaSettings()

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        problems = problems_of_exposure(self.server, self.auth.mode)
        ceiling = self.retention.max_bytes // 4
        if self.limits.message_bytes > ceiling:
            problems.append(
                f"limits.message_bytes {self.limits.message_bytes} is above a quarter of retention.max_bytes "
                f"({ceiling}): one message would push out most of the log"
            )
        if self.append.min_replicas and self.append.replica_wait_seconds >= self.redis.call_timeout_seconds:
            problems.append(
                f"append.replica_wait_seconds {self.append.replica_wait_seconds:g} must be below "
                f"redis.call_timeout_seconds ({self.redis.call_timeout_seconds:g}): it would be taken for dead"
            )
        if problems:
            raise ValueError("; ".join(problems))
        return self


__all__ = [
    "AdmissionSettings",
    "AppendSettings",
    "AskSettings",
    "AuthSettings",
    "BusSettings",
    "ClusterSettings",
    "DrainSettings",
    "HookSettings",
    "HooksSettings",
    "InboxSettings",
    "InputSettings",
    "KeptSettings",
    "KeySettings",
    "LimitSettings",
    "LivenessSettings",
    "LogSettings",
    "MediaSettings",
    "MemberSettings",
    "OrderSettings",
    "OutboxSettings",
    "QualitySettings",
    "QuotaSettings",
    "ReadinessSettings",
    "RebalanceSettings",
    "Receiver",
    "RedisSettings",
    "RetentionSettings",
    "RouteSettings",
    "RoutingSettings",
    "RunSettings",
    "SegmentSettings",
    "ServerSettings",
    "Settings",
    "TenantQuotas",
    "TlsSettings",
    "WebhookSettings",
    "hidden_url",
    "is_loopback",
]
