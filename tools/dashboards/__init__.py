"""Dashboards and alerts as tables; `python -m tools.dashboards` writes deploy/helm/relayrouter/{dashboards,rules}."""
