"""Connecting to clusters and reading them."""
