"""One module a page. Each has its routes in `PAGES`."""
