"""Asking an LLM, once per skill, for requests that the skill should serve."""
