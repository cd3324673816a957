"""Texts of memories: how they are compared, cut into pieces, counted and scored by words."""
