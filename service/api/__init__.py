"""REST controllers, one per resource."""
