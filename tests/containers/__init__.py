"""The trainer's image."""
