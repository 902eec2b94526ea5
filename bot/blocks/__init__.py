"""Answers and alerts as Slack blocks."""
