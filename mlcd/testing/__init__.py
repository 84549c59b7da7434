"""Contract tests for strategies and backends, and clouds to test them on.

Subclass a contract in your tests and give it your object; pytest runs it. docs/howto/ shows how. Needs pytest.
"""
