"""Helpers that libraries import."""
