# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Healthy switches in each language, all as one and the same wish, and faults of each kind in each of them."""

from __future__ import annotations

WANTED = {
    "mtu": 9000,
    "pfc": [0, 1, 2, 3],
    "dscp": {24: 2, 16: 3},
    "ecn": {2: {"min": 150000, "max": 1500000}},
    "vlan": 10,
}

EOS = """\
! device: leaf1 (DCS-7060DX5-64S, EOS-4.32.2F)
hostname leaf1
qos map dscp 24 to traffic-class 2
qos map dscp 16 to traffic-class 3
!
qos profile GAUDI
   qos trust dscp
   priority-flow-control on
   priority-flow-control priority 0-3 no-drop
   !
   uc-tx-queue 2
      random-detect ecn minimum-threshold 150 kbytes maximum-threshold 1500 kbytes max-mark-probability 20 weight 0
      random-detect ecn count
!
interface Ethernet1/1
   description gaudi-1 hl0
   mtu 9214
   switchport access vlan 10
   service-profile GAUDI
"""

NXOS = """\
hostname leaf1
class-map type qos match-all DATA
  match dscp 24
class-map type qos match-all ACK
  match dscp 16
policy-map type qos GAUDI-IN
  class DATA
    set qos-group 2
  class ACK
    set qos-group 3
policy-map type network-qos GAUDI-NQ
  class type network-qos c-8q-nq0
    pause pfc-cos 0
  class type network-qos c-8q-nq1
    pause pfc-cos 1
  class type network-qos c-8q-nq2
    mtu 9216
    pause pfc-cos 2
  class type network-qos c-8q-nq3
    mtu 9216
    pause pfc-cos 3
policy-map type queuing GAUDI-OUT
  class type queuing c-out-8q-q2
    bandwidth remaining percent 60
    random-detect minimum-threshold 150 kbytes maximum-threshold 1500 kbytes drop-probability 7 weight 0 ecn
system qos
  service-policy type network-qos GAUDI-NQ
  service-policy type queuing output GAUDI-OUT
interface Ethernet1/1
  description gaudi-1 hl0
  priority-flow-control mode on
  service-policy type qos input GAUDI-IN
  mtu 9216
  switchport access vlan 10
"""

SONIC = """\
{
  "DEVICE_METADATA": {"localhost": {"hostname": "leaf1"}},
  "PORT": {"Ethernet0": {"lanes": "0,1", "mtu": "9100", "alias": "etp1"}},
  "PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "0,1,2,3", "dscp_to_tc_map": "AZURE", "tc_to_pg_map": "AZURE"}},
  "DSCP_TO_TC_MAP": {"AZURE": {"24": "2", "16": "3", "0": "0"}},
  "TC_TO_PRIORITY_GROUP_MAP": {"AZURE": {"0": "0", "2": "2", "3": "3"}},
  "QUEUE": {"Ethernet0|2": {"wred_profile": "GAUDI"}},
  "WRED_PROFILE": {"GAUDI": {"ecn": "ecn_all", "green_min_threshold": "150000", "green_max_threshold": "1500000"}},
  "VLAN_MEMBER": {"Vlan10|Ethernet0": {"tagging_mode": "untagged"}}
}
"""

CUMULUS = """\
nv set system hostname leaf1
nv set interface swp1-2 link mtu 9216
nv set interface swp1 bridge domain br_default access 10
nv set qos mapping GAUDI trust l3
nv set qos mapping GAUDI dscp 24 switch-priority 2
nv set qos mapping GAUDI dscp 16 switch-priority 3
nv set qos pfc GAUDI switch-priority 0,1,2,3
nv set qos pfc GAUDI tx enable
nv set qos congestion-control GAUDI traffic-class 2 ecn enable
nv set qos congestion-control GAUDI traffic-class 2 min-threshold 150000
nv set qos congestion-control GAUDI traffic-class 2 max-threshold 1500000
nv set interface swp1 qos mapping profile GAUDI
nv set interface swp1 qos pfc profile GAUDI
nv set interface swp1 qos congestion-control profile GAUDI
"""

#: The port and the configuration of each language.
HEALTHY = {
    "eos": ("Ethernet1/1", EOS),
    "nxos": ("Ethernet1/1", NXOS),
    "sonic": ("Ethernet0", SONIC),
    "cumulus": ("swp1", CUMULUS),
}

#: Language, rule, what is replaced by what, and what the finding then says is there.
PLANTED = [
    ("eos", "mtu", "mtu 9214", "mtu 1500", "1500"),
    ("eos", "mtu", "   mtu 9214\n", "", "none is set"),
    ("eos", "pfc", "priority 0-3 no", "priority 3 no", "3"),
    ("eos", "pfc", "   priority-flow-control on\n", "", "none"),
    ("eos", "dscp", "dscp 24 to traffic-class 2", "dscp 24 to traffic-class 1", "DSCP 24 to priority 1"),
    ("eos", "dscp", "qos map dscp 24 to traffic-class 2\n", "", "DSCP 24 to no priority"),
    ("eos", "ecn", "minimum-threshold 150 kb", "minimum-threshold 15 kb", "priority 2: 15000 to 1500000 bytes"),
    ("eos", "vlan", "access vlan 10", "access vlan 11", "11"),
    ("eos", "unread", "   service-profile GAUDI", "   service-profile GAUDI\n   qos cos 5", "line 20: qos cos 5"),
    ("nxos", "mtu", "  mtu 9216\n  switchport", "  mtu 1500\n  switchport", "1500"),
    ("nxos", "pfc", "    pause pfc-cos 1\n", "", "0, 2, 3"),
    ("nxos", "pfc", "control mode on", "control mode auto", "none"),
    ("nxos", "dscp", "match dscp 24", "match dscp 26", "DSCP 24 to no priority"),
    ("nxos", "ecn", "weight 0 ecn", "weight 0", "priority 2: no marking"),
    ("nxos", "vlan", "access vlan 10", "access vlan 1", "1"),
    ("nxos", "unread", "GAUDI-IN\n  mtu", "OTHER\n  mtu", "line 29: policy OTHER of type qos is not there"),
    ("sonic", "mtu", '"mtu": "9100"', '"mtu": "1500"', "1500"),
    ("sonic", "pfc", "0,1,2,3", "3,4", "3, 4"),
    ("sonic", "dscp", '"16": "3"', '"16": "4"', "DSCP 16 to priority 4"),
    ("sonic", "dscp", '"2": "2"', '"2": "7"', "DSCP 24 to priority 7"),
    ("sonic", "ecn", "ecn_all", "ecn_none", "priority 2: no marking"),
    ("sonic", "vlan", '"untagged"', '"tagged"', "none is set"),
    (
        "sonic",
        "unread",
        '"tc_to_pg_map"',
        '"tc_to_dscp_map": "X", "tc_to_pg_map"',
        "PORT_QOS_MAP|Ethernet0 tc_to_dscp_map: X",
    ),
    ("cumulus", "mtu", "link mtu 9216", "link mtu 1500", "1500"),
    ("cumulus", "pfc", "switch-priority 0,1,2,3", "switch-priority 3", "3"),
    ("cumulus", "pfc", "swp1 qos pfc profile", "swp2 qos pfc profile", "none"),
    ("cumulus", "dscp", "trust l3", "trust l2", "DSCP 16 to no priority"),
    ("cumulus", "ecn", "max-threshold 1500000", "max-threshold 200000", "priority 2: 150000 to 200000 bytes"),
    ("cumulus", "vlan", "access 10", "access 20", "20"),
    (
        "cumulus",
        "unread",
        "trust l3",
        "trust l3\nnv set qos roce mode lossless",
        "line 5: nv set qos roce mode lossless",
    ),
]
