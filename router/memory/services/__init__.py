"""Memory services beside the files: Forgetful, what it is told, and one search over both."""
