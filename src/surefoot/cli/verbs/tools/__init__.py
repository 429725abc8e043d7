"""`surefoot tools …`"""
