"""Reading the layers that a query needs, and one ranked answer of what they hold."""
