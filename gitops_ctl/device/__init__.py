"""Network devices over NETCONF and gNOI: sessions, reads, installs, and the sources of images.  Only workers import it (devices.md)."""
