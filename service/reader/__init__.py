"""A second reader of questions: a language model of the team's own behind an OpenAI-compatible endpoint."""
