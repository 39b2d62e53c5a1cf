"""The producer name under which a gateway appends what comes without a producer."""

from hashlib import sha256

from gateway.domain.wire.ids import GatewayId, ProducerName


def own_producer_name(gateway: GatewayId) -> ProducerName:
    """`~` and 16 hex digits: no name that the API accepts, and short whatever the gateway is called."""
    return ProducerName("~" + sha256(gateway.encode()).hexdigest()[:16])


__all__ = ["own_producer_name"]
