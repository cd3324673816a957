"""Pages to look at a served router with: what it decides and why, and what it has learnt.

They are rendered on the server; htmx exchanges parts of them, and everything works without it too.
"""
