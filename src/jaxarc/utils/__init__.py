"""Errors on traced values."""
