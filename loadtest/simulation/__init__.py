"""What drains and reconnects do to a cluster of any size, by the rules that gateways and SDKs run (docs/capacity.md).

Not a model of the rules but the rules: the drain's plan, the admission's bucket, the rebalance and the SDK's backoff
are imported. What is modelled is the rest: a balancer that chooses by chance, and connects that take no time.
"""
