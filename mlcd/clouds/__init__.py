"""The clouds that can be searched and run on."""
