"""What every HTTP server of this package needs: who may connect, and how it starts and stops."""
