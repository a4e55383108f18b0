"""Tools that try the handler check itself."""
