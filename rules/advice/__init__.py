"""Advice that goes beyond single findings: named reports about a whole cluster."""
