"""Imported by ansible.builtin.apt, and not used."""
