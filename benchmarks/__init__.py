"""Speed and quality, each against its target and against what a user would write instead."""
