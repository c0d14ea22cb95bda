"""The rivals that the paper compares with, and `fcfs`."""
