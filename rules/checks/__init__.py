"""The rules: one module of check and one file of words each."""
