"""Protection of the routes against untrusted clients. The threats: docs/reference/security.md."""
