"""Where scopes and the journal are kept. Stores decide nothing."""
