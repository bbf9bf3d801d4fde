"""What is known of integer expressions without running them: bounds, canonical forms, proofs, simplification."""
