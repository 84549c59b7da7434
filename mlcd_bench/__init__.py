"""Research beside the product: methods to compare with, contests against an oracle, the papers' studies."""
