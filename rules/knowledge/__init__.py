"""Topics in English, Spanish and Italian."""
