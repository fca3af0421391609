"""The gNOI side of a switch that can be upgraded: the services OS and System, strict to their text, with faults to order.

The device is one file that this side shares with the NETCONF side (tools/peers/iosxe): both show one switch.
"""
