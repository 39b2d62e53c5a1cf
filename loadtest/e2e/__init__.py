"""RelayRouter on a real Kubernetes: `python -m loadtest.e2e` installs, rolls, scales and breaks it under streams."""
