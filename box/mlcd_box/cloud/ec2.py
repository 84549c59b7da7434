"""Extends moto's EC2 by real machines behind its instances, states that take time, refusals, preemptions and events.

This is done by replacing methods of moto's classes. The states are EC2's: pending -> running -> stopping -> stopped, or
running -> shutting-down -> terminated.
"""

from __future__ import annotations

import base64
import ipaddress
import itertools
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from moto.ec2 import exceptions
from moto.ec2.models import ec2_backends
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
from moto.ec2.models.elastic_block_store import EBSBackend
from moto.ec2.models.elastic_network_interfaces import NetworkInterface
from moto.ec2.models.instances import Instance, InstanceBackend, InstanceState, StateReason
from moto.ec2.models.subnets import Subnet

from mlcd_box.cloud.faults import Faults, no_capacity
from mlcd_box.cloud.machine import Machine
from mlcd_box.cloud.market import Market, Trace
from mlcd_box.cloud.user_data import read_user_data
from mlcd_box.events import EventLog
from mlcd_box.offers import REGIONS, TYPES, usd_per_hour

PENDING_S = STOPPING_S = SHUTTING_DOWN_S = 2.0
NOTICE_S = 120.0
"""Time between the notice to a spot machine and its end."""
MARKET_S = 1.0
"""Polling interval of a replayed market."""
CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}
TAKEN_BACK = StateReason("Server.SpotInstanceTermination: Spot instance termination", "Server.SpotInstanceTermination")


def market_of(instance: Instance) -> str:
    """The market of an instance: `spot` or `on-demand`."""
    return "spot" if instance.lifecycle == "spot" else "on-demand"


def all_instances() -> list[Instance]:
    """The instances of all regions, including terminated ones."""
    backends = [backend for account in ec2_backends.values() for backend in account.values()]
    return [each for backend in backends for kept in backend.reservations.values() for each in kept.instances]


def _on_spot(zone: str) -> list[Instance]:
    """The spot machines of a zone that are up, the oldest first."""
    up = [each for each in all_instances() if each.state in ("pending", "running") and market_of(each) == "spot"]
    return [each for each in up if each.placement.zone == zone]


def all_volumes() -> list[Any]:
    """The existing volumes of all regions."""
    backends = [backend for account in ec2_backends.values() for backend in account.values()]
    return [volume for backend in backends for volume in backend.volumes.values()]


@dataclass
class Ec2:
    """The machines of a box, behind moto's EC2 instances."""

    folder: Path
    image: Path
    endpoint: str
    events: EventLog
    faults: Faults
    market: Market
    machines: dict[str, Machine] = field(default_factory=dict)
    notices: dict[str, float] = field(default_factory=dict)
    """When spot machines will be preempted, by their ids."""
    _volumes: set[str] = field(default_factory=set)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def install(self) -> None:
        """Replace methods of moto's classes."""
        RegionsAndZonesBackend.regions = [each for each in RegionsAndZonesBackend.regions if each.name in REGIONS]
        Subnet.get_available_subnet_ip = _next_address(itertools.count(10))
        NetworkInterface.check_auto_public_ip = _public_is_private
        run, terminate, stop, start = (
            InstanceBackend.run_instances,
            Instance.terminate,
            Instance.stop,
            Instance.start,
        )
        add_device, delete_volume = Instance.add_block_device, EBSBackend.delete_volume
        self._terminate, self._stop = terminate, stop

        def run_instances(backend: Any, image_id: Any, count: int, *arguments: Any, **options: Any) -> Any:
            self._check(backend, count, options)
            reservation = run(backend, image_id, count, *arguments, **options)
            for instance in reservation.instances:
                self._boot(instance)
            return reservation

        def volume_deleted(backend: Any, volume_id: str) -> Any:
            volume = delete_volume(backend, volume_id)
            if volume_id in self._volumes:
                self.events.write("volume_gone", id=volume_id)
            return volume

        def device_added(instance: Instance, size: int, device_path: str, *arguments: Any, **options: Any) -> None:
            """By default, EC2 deletes the root device with its machine; moto would keep it."""
            add_device(instance, size, device_path, *arguments, **options)
            instance.block_device_mapping[device_path].delete_on_termination = True

        def started(instance: Instance) -> Any:
            before = start(instance)
            self._boot(instance)
            return before

        InstanceBackend.run_instances = run_instances
        EBSBackend.delete_volume = volume_deleted
        Instance.terminate = lambda instance: self._end(instance, "terminated", "by request")
        Instance.stop = lambda instance: self._end(instance, "stopped", "by request")
        Instance.start = started
        Instance.add_block_device = device_added

    def interrupt(self, instance: Instance, notice_s: float = NOTICE_S) -> None:
        """Give notice to a spot machine, and preempt it at the end of the notice."""
        self.notices[instance.id] = time.time() + notice_s
        at = datetime.fromtimestamp(self.notices[instance.id], UTC)
        self.events.write("notice", id=instance.id, at=at.isoformat())

        def take() -> None:
            if instance.state in ("pending", "running"):
                self._end(instance, "terminated", "taken back")
                instance.state_reason = TAKEN_BACK

        _later(notice_s, take)

    def keep_market(self) -> None:
        """Runs forever: give notice to the spot machines that the trace will preempt."""
        while True:
            if (trace := self.market.trace()) is not None:
                for instance in self._surplus(trace, time.time()):
                    self.interrupt(instance, trace.notice_s)
            time.sleep(MARKET_S)

    def _surplus(self, trace: Trace, now_s: float) -> list[Instance]:
        """The spot machines, still without a notice, for which their zones will have no capacity; the newest ones."""
        surplus: list[Instance] = []
        for zone in trace.zones:
            held = [each for each in _on_spot(zone) if each.id not in self.notices]
            surplus += held[int(min(len(held), trace.machines(zone, now_s + trace.notice_s))) :]
        return surplus

    def lose(self, instance: Instance) -> None:
        """Let a machine fail: it is off at once, without a shutdown."""
        self.machines[instance.id].kill()

    def _check(self, backend: Any, count: int, options: dict[str, Any]) -> None:
        """Refuse an order for which there is no capacity, quota or such type."""
        nics = [nic["SubnetId"] for nic in options.get("nics", []) if "SubnetId" in nic]
        subnet = options.get("subnet_id") or (nics[0] if nics else None)
        zone = backend.get_subnet(subnet).availability_zone if subnet else options.get("placement")
        zone = str(zone or f"{backend.region_name}a")
        market = "spot" if options.get("instance_market_options") else "on-demand"
        type = options["instance_type"]
        refusal = self.faults.refusal(type, zone, market)
        trace = self.market.trace() if market == "spot" else None
        if trace is not None and trace.rentable(zone, time.time()) < len(_on_spot(zone)) + count:
            refusal = no_capacity(type, zone)
        if type not in TYPES:
            refusal = "Unsupported", f"Your requested instance type ({type}) is not supported in {zone}."
        if refusal is not None:
            self.events.write("refused", type=type, zone=zone, market=market, why=refusal[0])
            raise exceptions.EC2ClientError(*refusal)

    def _boot(self, instance: Instance) -> None:
        type, zone, market = instance.instance_type, str(instance.placement.zone), market_of(instance)
        machine = Machine(instance.id, self.folder / "machines" / instance.id, str(instance.private_ip))
        self.events.write(
            "started",
            id=instance.id,
            type=type,
            zone=zone,
            market=market,
            usd_per_hour=usd_per_hour(type, zone, market),
            address=machine.address,
            tags={tag["key"]: tag["value"] for tag in instance.get_tags()},
        )
        for _, device in instance.get_block_device_mapping:
            if device.volume_id not in self._volumes:  # it may have been started before
                self._volumes.add(device.volume_id)
                self.events.write("volume", id=device.volume_id, gb=_size(instance, device), machine=instance.id)
        _set_state(instance, "pending")
        user_data = base64.b64decode(str(instance.user_data or "")).decode()
        with self._lock:
            self.machines[instance.id] = machine
            machine.boot(
                self.image, read_user_data(user_data), self.faults.ssh_after_s(type, zone, market), self.endpoint
            )
        threading.Thread(target=self._watch, args=(instance, machine), daemon=True).start()

        def runs() -> None:
            if instance.state == "pending":
                _set_state(instance, "running")
                self.events.write("running", id=instance.id)

        _later(PENDING_S, runs)

    def _watch(self, instance: Instance, machine: Machine) -> None:
        """Wait for a shutdown from within the machine: it stops it, or terminates it if it is spot or set to do so."""
        machine.wait()
        if self.machines.get(instance.id) is machine and instance.state in ("pending", "running"):
            ends = market_of(instance) == "spot" or instance.instance_initiated_shutdown_behavior == "terminate"
            self._end(instance, "terminated" if ends else "stopped", "from within")

    def _end(self, instance: Instance, state: str, why: str) -> Any:
        """Switch a machine off. EC2 bills it until it begins to stop or to shut down."""
        before = InstanceState(instance.state, instance.state_code)
        if before.name in ("terminated", "shutting-down") or before.name == state:
            return before
        with self._lock:
            machine = self.machines.pop(instance.id, None)
        self.events.write(state, id=instance.id, why=why)
        if machine is not None:
            machine.kill()
            if state == "terminated":
                machine.remove()
        (self._terminate if state == "terminated" else self._stop)(instance)
        _set_state(instance, "shutting-down" if state == "terminated" else "stopping")
        _later(SHUTTING_DOWN_S, lambda: _set_state(instance, state))
        return before


def _set_state(instance: Instance, name: str) -> None:
    instance._state.name, instance._state.code = name, CODES[name]


def _later(seconds: float, do: Any) -> None:
    timer = threading.Timer(seconds, do)
    timer.daemon = True
    timer.start()


def _next_address(numbers: Any) -> Any:
    """A replacement for moto's method that gives no two machines the same address, even in different regions."""

    def next_address(subnet: Subnet, instance: Instance) -> str:
        address = str(ipaddress.ip_network(subnet.cidr_block).network_address + next(numbers))
        subnet._subnet_ips[address] = instance
        return address

    return next_address


def _public_is_private(interface: NetworkInterface) -> None:
    """Make the private address the public one, too: SkyPilot logs in at the public address."""
    if str(interface.public_ip_auto_assign).lower() == "true":
        interface.public_ip = interface.private_ip_address


def _size(instance: Instance, device: Any) -> int:
    """The size of a volume, in GB."""
    return int(instance.ec2_backend.volumes[device.volume_id].size)
