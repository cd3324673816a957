"""Memory files: Markdown that a project keeps, such as Serena's ``.serena/memories``."""
