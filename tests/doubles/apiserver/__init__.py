"""An API server in memory, for tests and simulations: the rules of a real one, faults on request."""

from tests.doubles.apiserver.api import ApiServer, AuditEntry
from tests.doubles.apiserver.faults import Fault
from tests.doubles.apiserver.request import Answer, Request
from tests.doubles.apiserver.server import FakeApiServer

__all__ = ["Answer", "ApiServer", "AuditEntry", "FakeApiServer", "Fault", "Request"]
