"""What operators watch a service by: metrics, whether it is ready, and a log line for each request."""
