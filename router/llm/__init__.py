"""Language models behind one interface: the prompt, the providers, the parsing of answers."""
