"""Producer names of our own: what comes without a producer, and the writer of a run."""

from hashlib import sha256

from gateway.domain.wire.ids import GatewayId, ProducerName, RunId


def own_producer_name(gateway: GatewayId) -> ProducerName:
    """`~` and 16 hex digits: no name that the API accepts, and short whatever the gateway is called."""
    return ProducerName("~" + sha256(gateway.encode()).hexdigest()[:16])


def run_writer(run: RunId) -> ProducerName:
    """The one writer of a run at a time; its epochs fence each other (design.md 6)."""
    return ProducerName(f"~run/{run}")


__all__ = ["own_producer_name", "run_writer"]
