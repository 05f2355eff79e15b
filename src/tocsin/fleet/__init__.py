"""Any number of streams, told apart by keys, carried by any engine."""

from tocsin.fleet.alarms import FleetAlarm
from tocsin.fleet.fleet import Fleet, Step
from tocsin.fleet.turns import Refused

__all__ = ["Fleet", "FleetAlarm", "Refused", "Step"]
