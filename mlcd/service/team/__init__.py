"""A team: its members, their roles and budgets, and the audit log."""
