"""The stages of the cascade: fuzzy cache, exact cache, LLM, vector fallback."""
