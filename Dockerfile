# The server: router serve, with MCP under /mcp. See docs/serving.md.
FROM python:3.12-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY router ./router
COPY skills ./skills
# No compiler: what is no wheel is plain Python.
RUN python -m venv /opt/router \
    && /opt/router/bin/pip install --no-cache-dir --prefer-binary '.[serve,redis]'

FROM python:3.12-slim
RUN useradd --uid 10001 --create-home --home-dir /var/lib/router router
COPY --from=build /opt/router /opt/router
USER router
WORKDIR /var/lib/router
ENV HOME=/var/lib/router \
    XDG_CONFIG_HOME=/var/lib/router/config \
    ROUTER_STATE_DIR=/var/lib/router/state \
    ROUTER_MEMORY__DIRECTORY=/var/lib/router/memory \
    ROUTER_SKILLS=/skills \
    PYTHONUNBUFFERED=1
# All that is written: keys, what was learnt, caches, memories.
VOLUME /var/lib/router
EXPOSE 8017
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s CMD ["/opt/router/bin/python", "-c", \
    "import urllib.request as u; u.urlopen('http://127.0.0.1:8017/healthz', timeout=2)"]
ENTRYPOINT ["/opt/router/bin/router"]
CMD ["serve", "--host", "0.0.0.0", "--allow-host", "router", "--allow-host", "localhost", \
     "--allow-host", "127.0.0.1", "--key-env", "SERVER_KEY"]
