"""`mlcd mcp`: MLCD for assistants, by the Model Context Protocol. Who starts the server says what the agent may do."""
