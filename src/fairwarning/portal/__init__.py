"""The portal: pages for people, made on the server from the operator API."""
