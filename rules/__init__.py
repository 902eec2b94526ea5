"""The brain of gpu-advisor: facts in, findings and answers out. No clock, no network, no files but its own data."""
