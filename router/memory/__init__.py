"""Memory: which layers to read for a query, what they hold, and how much of it to believe."""
