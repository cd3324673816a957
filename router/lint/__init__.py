"""Linting: what a skill's author should mend, beyond what keeps the skill from being loaded."""
