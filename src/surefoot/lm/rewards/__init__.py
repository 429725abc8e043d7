"""Rewards for responses: functions, reward models, KL penalty, guards."""
