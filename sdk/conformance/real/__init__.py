"""Real gateways with faults in front of and behind them, for both SDKs: every message once, every input once."""
