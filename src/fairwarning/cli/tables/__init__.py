"""Makes tables and cards from the API's JSON. Pure: the server's time is passed in."""
