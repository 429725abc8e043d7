"""`surefoot telemetry …`"""
