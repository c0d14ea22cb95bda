"""`tradewind plan-wan`: where to put the parameter server in a WAN, over which paths, how long an epoch takes, with a bound.

`solve` plans a scenario with the `apsp` policy's own code, `report` makes plain data of it, `cli.plan_wan` prints it.
"""
