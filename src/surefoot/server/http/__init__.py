"""The HTTP layer: protocol, access control, routes, OpenAPI."""
