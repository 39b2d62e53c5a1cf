"""A reconnect storm: SDK clients lose their only gateway at once, and come back to its successor."""
