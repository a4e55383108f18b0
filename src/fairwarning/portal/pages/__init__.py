"""The pages of the portal. Each module has its routes in `PAGES`."""
