"""Nodes and pods as protobuf: the schema, and what protoc makes of it."""
