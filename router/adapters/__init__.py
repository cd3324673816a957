"""The router inside agent frameworks: one module each, imported only by who uses that framework.

Each needs the package of its framework, which is an optional extra of the same name:
``pip install '.[langchain]'`` in the folder of cascade-router. What they share is in
``selection.py``.
"""
