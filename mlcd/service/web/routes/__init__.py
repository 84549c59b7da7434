"""The API's routes, a file for each topic. Each has a `router`; `mlcd.service.web.app` includes them."""
