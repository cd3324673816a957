"""Contexts for a model: memories and documents in so many tokens."""
