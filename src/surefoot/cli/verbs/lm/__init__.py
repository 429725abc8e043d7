"""`surefoot lm …`"""
