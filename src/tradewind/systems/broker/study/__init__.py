"""Where savings come from, what earlier deadlines cost, and what not knowing the future costs. Ours; no paper."""
