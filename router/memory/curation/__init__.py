"""Changes to memories that are proposed, shown with their evidence, and accepted by somebody."""
