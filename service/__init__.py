"""The runtime: HTTP, database, clusters, schedule, command line."""
