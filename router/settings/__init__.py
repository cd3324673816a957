"""Settings: their sources, what a cloned folder may set, and the plug-ins that they name."""
