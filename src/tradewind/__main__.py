"""`python -m tradewind`: the command line."""

from tradewind.cli.main import main

main()
