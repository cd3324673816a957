"""Work side by side: turns on the event loop, shared work, background tasks, threads, and a circuit
breaker."""
