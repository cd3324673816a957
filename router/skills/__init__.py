"""Reading skills: manifests, the folders they lie in, and catalogs of them."""
