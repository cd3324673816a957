"""The use cases, once: what a caller may ask, what is answered, and how it is done."""
