"""`mlcd mcp`: the MCP server through which AI assistants use MLCD. Whoever starts it sets what the agent may do."""
