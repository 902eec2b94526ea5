"""REST over the advisor: one controller per resource, thin; documents, problems and the gate beside them.

Importing this package imports nothing heavy: the command line shares :mod:`service.api.documents`.
"""
