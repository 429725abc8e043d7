"""constitution"""
