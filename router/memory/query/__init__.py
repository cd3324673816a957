"""Understanding a query: what it asks for, which layers answer it, the time it speaks of."""
