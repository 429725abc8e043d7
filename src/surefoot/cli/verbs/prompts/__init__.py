"""`surefoot prompts …`"""
