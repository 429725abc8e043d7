"""`surefoot town …`"""
