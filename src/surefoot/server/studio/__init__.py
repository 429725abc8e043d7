"""The studio: graphs drawn, run and looked at in a browser on this machine."""
