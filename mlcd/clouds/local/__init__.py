"""The local backend: real nodes on this machine."""
