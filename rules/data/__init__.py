"""Researched facts, each row with a source and a date."""
