"""Runs a room with a client for forges that ends with it."""

from collections.abc import Awaitable

from gitops_ctl.forge.http import HttpxClient


async def run_with(http: HttpxClient, work: Awaitable[None]) -> None:
    """`work`, and then no connection is left, however it ended."""
    async with http:
        await work
