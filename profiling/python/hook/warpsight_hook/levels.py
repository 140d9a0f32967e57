"""How much is recorded; each level includes the previous ones."""

LEVELS = ("off", "steps", "modules", "ops", "lines")
MODULES, OPS, LINES = 2, 3, 4
