"""A folder with all that one release is installed from, sealed by the digests in its `lock.json`."""
