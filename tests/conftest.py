"""What tests of every folder may ask for."""

pytest_plugins = ["pytester", "tests.support.postgres"]
