"""Methods to compare with: what other papers and people do. Each is registered as an entry point of `mlcd.methods`."""
