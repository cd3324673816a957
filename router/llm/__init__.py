"""Language models behind one seam: the question, the providers, the reading of answers."""
