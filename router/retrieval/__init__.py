"""Retrieval over the installed skills: encoders, BM25, the Chroma index, and their fusion."""
