"""A run as the pages show it, from the ledger's lines alone. Plain data that JSON can say; no markup, no pixels."""
