"""Loop transformations from IR to IR, and the recipes that schedule plain loops for a kind of target."""
