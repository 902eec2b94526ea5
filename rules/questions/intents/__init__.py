"""What is asked of the clusters, intent by intent: each is a function from the facts of one cluster to what is
shown."""
