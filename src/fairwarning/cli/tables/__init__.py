"""Pure functions that make tables and cards from the API's JSON and the server's time."""
