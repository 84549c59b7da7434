"""The API's routes, a file for each thing that is asked. Each has a `router`; `mlcd.service.web.app` knows them all."""
