"""The HTTP API: the service for programs in any language, with keys, bounds, metrics and events."""
