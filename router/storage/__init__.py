"""What the router keeps on the disk: files for their owner only, and SQLite databases."""
