"""Mathematical models: pure functions of arrays, each file with a glossary of its symbols."""
