"""Notifications about runs ('news' in the API and on the command line): events, receivers, delivery with retries."""
