"""What is known about clusters: Kubernetes objects, trimmed to what rules read, and the facts derived from them."""
