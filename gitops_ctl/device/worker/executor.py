"""The worker's entry for leaves: what it has loaded for a device, as the execution of a leaf needs it (rollouts.md, sections 13 and 17.2).

Secrets are read anew for every round: the gate compares what is loaded with what is there, and a rotated credential is the one that is
used for the next session.
"""

from contextlib import AbstractAsyncContextManager
from typing import Final

from gitops_ctl.core.errors import GitopsError
from gitops_ctl.core.ids import NamespacedName
from gitops_ctl.core.jsonvalue import object_at, text_at
from gitops_ctl.device.addresses import image_endpoint
from gitops_ctl.device.imagecredentials import image_login
from gitops_ctl.device.imagedownload import Download
from gitops_ctl.device.spool import Opening
from gitops_ctl.device.worker import maintenance
from gitops_ctl.device.worker.leafports import Access, LeafPorts, Trust
from gitops_ctl.device.worker.lifecycle import Lifecycle
from gitops_ctl.device.worker.place import Equipment, Place
from gitops_ctl.fleet.gate import Runtime
from gitops_ctl.fleet.leaf import Leaf

_OTHER_GENERATION: Final = "the worker has not loaded the generation of the device that the upgrade is bound to"
_STILL_LOOKS: Final = 40
"""That have to say the same; ten minutes with the interval that workers have unless told otherwise."""


class Executor:
    """Executes the leaves of one namespace; one for each worker process."""

    def __init__(self, equipment: Equipment) -> None:
        self._equipment = equipment
        self._lifecycle = Lifecycle(
            LeafPorts(
                client=equipment.client,
                clock=equipment.clock,
                journal=equipment.journal,
                gnoi=equipment.gnoi,
                netconf=equipment.netconf,
                spool=equipment.spool,
                new_id=equipment.new_id,
                poll_s=equipment.intervals.worker_poll_s,
                still_s=_STILL_LOOKS * equipment.intervals.worker_poll_s,
                unsaved_blocks=equipment.unsaved_blocks,
            )
        )

    async def step(self, place: Place, leaf: NamespacedName) -> float | None:
        """Bring a leaf as far as it goes now; it may take as long as an install.

        Returns:
            Seconds until the next look at the latest; None: when leaf, device or Secrets change.

        Raises:
            GitopsError: to be tried again.
        """

        async def access(found: Leaf) -> Access:
            return await self._access(place, found)

        return await self._lifecycle.step(access, namespace=leaf.namespace, name=leaf.name)

    async def _access(self, place: Place, leaf: Leaf) -> Access:
        is_current = True
        try:
            material = await place.reload()
        except GitopsError:
            if place.material is None:
                raise
            material, is_current = place.material, False
        opening, source_problem = await self._source(leaf)
        bound = leaf.binding
        is_bound_to = material.made_for == (bound.device_uid, bound.device_generation)
        who = self._equipment.who
        return Access(
            runtime=Runtime(
                namespace=self._equipment.namespace,
                username=who.username,
                pod_name=who.pod_name,
                pod_uid=who.pod_uid,
                loaded_revision=material.revision,
                has_current_secrets=is_current,
                source_problem=source_problem,
            ),
            gnoi=material.target if is_bound_to else None,
            netconf=material.endpoint if is_bound_to else None,
            trust=Trust(*material.versions),
            chassis=leaf.admission.physical_identity if leaf.admission is not None else "",
            maintenance=_Maintenance(self._equipment, place),
            opening=opening,
            problem=material.problem if is_bound_to else _OTHER_GENERATION,
            turn=place.turn,
        )

    async def _source(self, leaf: Leaf) -> tuple[Opening | None, str]:
        """How the image is fetched, and why its Secret or server is not what the leaf is bound to."""
        url = text_at(object_at(leaf.spec, "imageSource"), "url")
        if not url:
            return None, ""
        name, login = text_at(leaf.spec, "imageSource", "urlSecretRef", "name"), None
        try:
            endpoint = image_endpoint(url)
            if name:
                secret = await self._equipment.secrets.read(name)
                if secret is None or secret.uid != leaf.binding.source_secret_uid:
                    why = "does not exist" if secret is None else "was made anew since the leaf was bound"
                    return None, f"the Secret {name} of the image source {why}"
                login = image_login(secret.data, labels=secret.labels, endpoint=endpoint)
        except GitopsError as error:
            return None, error.message

        def opening() -> AbstractAsyncContextManager[Download]:
            return self._equipment.sources.download(endpoint, login)

        return opening, ""


class _Maintenance:
    """The maintenance of one device, as leaves ask for it."""

    def __init__(self, equipment: Equipment, place: Place) -> None:
        self._equipment, self._place = equipment, place

    async def ask(self, leaf: Leaf) -> bool:
        return await maintenance.ask(self._equipment, self._place, leaf) is not None

    async def let_go(self, leaf: Leaf) -> None:
        await maintenance.let_go(self._equipment, self._place, leaf)
