"""Reading what may be a stranger's: files, YAML, TOML, and replies over HTTP, all with bounds."""
