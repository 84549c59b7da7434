"""Contract suites that every strategy and every backend passes, and clouds to test them on.

Subclass a suite in your tests, give it your object, and pytest does the rest; docs/howto/ shows how.
Needs pytest.
"""
