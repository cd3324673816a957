"""Tools of agents as things to route to: definitions of many kinds, read and left untouched."""
