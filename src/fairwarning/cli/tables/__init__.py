"""From the API's JSON to what people see. Pure: the server's time comes in."""
