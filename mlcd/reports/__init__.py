"""Reports: a ledger goes in, a document comes out."""
