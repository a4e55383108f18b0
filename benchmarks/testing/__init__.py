"""What the fixture costs a test."""
