"""A server with another host key is refused before it learns who wants to log in (devices.md, sections 2, 6 and 20, check 1)."""

import pytest

from gitops_ctl.core.codes import ErrorCode
from gitops_ctl.core.errors import BlockedError
from gitops_ctl.device.netconf import NetconfClient
from tests.support.git_keys import SshKey
from tests.support.netconf_device import QUICK, NetconfDevice

pytestmark = pytest.mark.peers
TYPES = {"rsa": 2048, "ecdsa": 256, "ed25519": None}
AUTHENTICATION = "userauth-request"


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A device's own key and a stranger's, of each type, and the user's."""
    place = tmp_path_factory.mktemp("keys")
    made = {
        (name, type): SshKey.generate(place, name=name, type=type, bits=bits)
        for name in ("own", "stranger")
        for type, bits in TYPES.items()
    }
    made["user"] = SshKey.generate(place, name="user")
    return made


@pytest.fixture
def device(tmp_path, keys, request):
    device = NetconfDevice(tmp_path, host_key=keys["own", "ed25519"], user_key=keys["user"])
    yield device
    device.stop()


async def refusal(device, *, expected: SshKey) -> BlockedError:
    client = NetconfClient(limits=QUICK)
    with pytest.raises(BlockedError) as raised:
        async with client.session(device.endpoint(host_key=expected)):
            pass
    return raised.value


@pytest.mark.parametrize("type", TYPES)
async def test_the_pinned_key_of_each_type_opens_a_session(device, keys, type):
    device.start(keys["own", type])
    async with NetconfClient(limits=QUICK).session(device.endpoint(host_key=keys["own", type])) as session:
        assert session.capabilities
    assert AUTHENTICATION in device.log


@pytest.mark.parametrize("type", TYPES)
async def test_another_key_of_the_same_type_is_refused_before_any_authentication(device, keys, type):
    device.start(keys["stranger", type])
    error = await refusal(device, expected=keys["own", type])
    assert error.code is ErrorCode.DEVICE_HOST_KEY_REFUSED
    assert keys["stranger", type].fingerprint in error.message
    assert keys["own", type].fingerprint in error.message
    assert AUTHENTICATION not in device.log


@pytest.mark.parametrize(("pinned", "shown"), [("rsa", "ed25519"), ("ed25519", "rsa"), ("ecdsa", "rsa")])
async def test_a_key_of_another_type_is_refused_before_any_authentication(device, keys, pinned, shown):
    device.start(keys["stranger", shown])
    error = await refusal(device, expected=keys["own", pinned])
    assert error.code is ErrorCode.DEVICE_HOST_KEY_REFUSED
    assert AUTHENTICATION not in device.log


async def test_another_user_key_is_told_apart_from_another_host_key(device, keys):
    device.start(keys["own", "ed25519"])
    client = NetconfClient(limits=QUICK)
    with pytest.raises(BlockedError) as raised:
        async with client.session(device.endpoint(user_key=keys["stranger", "rsa"])):
            pass
    assert raised.value.code is ErrorCode.DEVICE_CREDENTIAL_REFUSED
    assert AUTHENTICATION in device.log
