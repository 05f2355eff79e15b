"""Any number of streams, told apart by keys, carried by any engine."""

from tocsin._streams.fleet.alarms import FleetAlarm
from tocsin._streams.fleet.fleet import Fleet, Step
from tocsin._streams.fleet.turns import Refused

__all__ = ["Fleet", "FleetAlarm", "Refused", "Step"]
