"""How the tables came to be, step by step: Alembic's. Each step is never changed once it was released."""
