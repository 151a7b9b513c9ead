"""Settings of the bridge: see `bridge_config`."""
