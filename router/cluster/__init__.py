"""Many processes, many machines: answers, evidence and models shared through Redis or Valkey."""
