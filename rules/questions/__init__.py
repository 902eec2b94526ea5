"""From the text of a question to its reading and its answer."""
