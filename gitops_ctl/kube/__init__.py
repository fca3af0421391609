"""The Kubernetes runtime: transport, informers, queue, leases, events and status, on asyncio and plain JSON trees."""
