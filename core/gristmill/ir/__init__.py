"""The intermediate representation: what a kernel is between its source and machine code."""
