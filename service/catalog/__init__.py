"""The price catalogue: bundled offers, refreshed by gpuhunt, under the team's own prices and providers."""
