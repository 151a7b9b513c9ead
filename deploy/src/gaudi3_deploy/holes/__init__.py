"""What is known to be wrong in a mirror's packages: advisories, which of them its use reaches, and the same as VEX."""
