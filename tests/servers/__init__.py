"""Loopback servers that speak the providers' protocols, scripted by tests.

They run in threads of their own, so that asynchronous code, the synchronous face and subprocesses
can all talk to them, and they check that what an SDK sends is valid protocol.
"""
