# Generated from github.com/siderolabs/talos v1.14.0, api/resource/definitions/enums/enums.proto by tools/generate_stubs.py; never edited by hand.
# SPDX-License-Identifier: MPL-2.0
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor

class RuntimeKernelModuleState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KERNEL_MODULE_STATE_LIVE: _ClassVar[RuntimeKernelModuleState]
    KERNEL_MODULE_STATE_LOADING: _ClassVar[RuntimeKernelModuleState]
    KERNEL_MODULE_STATE_UNLOADING: _ClassVar[RuntimeKernelModuleState]
    KERNEL_MODULE_STATE_BUILTIN: _ClassVar[RuntimeKernelModuleState]

class RuntimeKernelModuleType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KERNEL_MODULE_TYPE_UNKNOWN: _ClassVar[RuntimeKernelModuleType]
    KERNEL_MODULE_TYPE_BUILTIN: _ClassVar[RuntimeKernelModuleType]
    KERNEL_MODULE_TYPE_DYNAMIC: _ClassVar[RuntimeKernelModuleType]

class RuntimeMachineStage(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MACHINE_STAGE_UNKNOWN: _ClassVar[RuntimeMachineStage]
    MACHINE_STAGE_BOOTING: _ClassVar[RuntimeMachineStage]
    MACHINE_STAGE_INSTALLING: _ClassVar[RuntimeMachineStage]
    MACHINE_STAGE_MAINTENANCE: _ClassVar[RuntimeMachineStage]
    MACHINE_STAGE_RUNNING: _ClassVar[RuntimeMachineStage]
    MACHINE_STAGE_REBOOTING: _ClassVar[RuntimeMachineStage]
    MACHINE_STAGE_SHUTTING_DOWN: _ClassVar[RuntimeMachineStage]
    MACHINE_STAGE_RESETTING: _ClassVar[RuntimeMachineStage]
    MACHINE_STAGE_UPGRADING: _ClassVar[RuntimeMachineStage]

class RuntimeSELinuxState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SE_LINUX_STATE_DISABLED: _ClassVar[RuntimeSELinuxState]
    SE_LINUX_STATE_PERMISSIVE: _ClassVar[RuntimeSELinuxState]
    SE_LINUX_STATE_ENFORCING: _ClassVar[RuntimeSELinuxState]

class RuntimeFIPSState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FIPS_STATE_DISABLED: _ClassVar[RuntimeFIPSState]
    FIPS_STATE_ENABLED: _ClassVar[RuntimeFIPSState]
    FIPS_STATE_STRICT: _ClassVar[RuntimeFIPSState]

class RuntimeUnattendedInstallPhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNATTENDED_INSTALL_PHASE_PENDING: _ClassVar[RuntimeUnattendedInstallPhase]
    UNATTENDED_INSTALL_PHASE_INSTALLING: _ClassVar[RuntimeUnattendedInstallPhase]
    UNATTENDED_INSTALL_PHASE_INSTALLED: _ClassVar[RuntimeUnattendedInstallPhase]
    UNATTENDED_INSTALL_PHASE_WAITING_FOR_REBOOT: _ClassVar[RuntimeUnattendedInstallPhase]
    UNATTENDED_INSTALL_PHASE_FAILED: _ClassVar[RuntimeUnattendedInstallPhase]

class MachineType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TYPE_UNKNOWN: _ClassVar[MachineType]
    TYPE_INIT: _ClassVar[MachineType]
    TYPE_CONTROL_PLANE: _ClassVar[MachineType]
    TYPE_WORKER: _ClassVar[MachineType]

class NethelpersAddressFlag(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NETHELPERS_ADDRESSFLAG_UNSPECIFIED: _ClassVar[NethelpersAddressFlag]
    ADDRESS_TEMPORARY: _ClassVar[NethelpersAddressFlag]
    ADDRESS_NO_DAD: _ClassVar[NethelpersAddressFlag]
    ADDRESS_OPTIMISTIC: _ClassVar[NethelpersAddressFlag]
    ADDRESS_DAD_FAILED: _ClassVar[NethelpersAddressFlag]
    ADDRESS_HOME: _ClassVar[NethelpersAddressFlag]
    ADDRESS_DEPRECATED: _ClassVar[NethelpersAddressFlag]
    ADDRESS_TENTATIVE: _ClassVar[NethelpersAddressFlag]
    ADDRESS_PERMANENT: _ClassVar[NethelpersAddressFlag]
    ADDRESS_MANAGEMENT_TEMP: _ClassVar[NethelpersAddressFlag]
    ADDRESS_NO_PREFIX_ROUTE: _ClassVar[NethelpersAddressFlag]
    ADDRESS_MC_AUTO_JOIN: _ClassVar[NethelpersAddressFlag]
    ADDRESS_STABLE_PRIVACY: _ClassVar[NethelpersAddressFlag]

class NethelpersAddressSortAlgorithm(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ADDRESS_SORT_ALGORITHM_V1: _ClassVar[NethelpersAddressSortAlgorithm]
    ADDRESS_SORT_ALGORITHM_V2: _ClassVar[NethelpersAddressSortAlgorithm]

class NethelpersADLACPActive(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ADLACP_ACTIVE_OFF: _ClassVar[NethelpersADLACPActive]
    ADLACP_ACTIVE_ON: _ClassVar[NethelpersADLACPActive]

class NethelpersADSelect(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AD_SELECT_STABLE: _ClassVar[NethelpersADSelect]
    AD_SELECT_BANDWIDTH: _ClassVar[NethelpersADSelect]
    AD_SELECT_COUNT: _ClassVar[NethelpersADSelect]

class NethelpersARPAllTargets(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ARP_ALL_TARGETS_ANY: _ClassVar[NethelpersARPAllTargets]
    ARP_ALL_TARGETS_ALL: _ClassVar[NethelpersARPAllTargets]

class NethelpersARPValidate(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ARP_VALIDATE_NONE: _ClassVar[NethelpersARPValidate]
    ARP_VALIDATE_ACTIVE: _ClassVar[NethelpersARPValidate]
    ARP_VALIDATE_BACKUP: _ClassVar[NethelpersARPValidate]
    ARP_VALIDATE_ALL: _ClassVar[NethelpersARPValidate]
    ARP_VALIDATE_FILTER: _ClassVar[NethelpersARPValidate]
    ARP_VALIDATE_FILTER_ACTIVE: _ClassVar[NethelpersARPValidate]
    ARP_VALIDATE_FILTER_BACKUP: _ClassVar[NethelpersARPValidate]

class NethelpersAutoHostnameKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AUTO_HOSTNAME_KIND_OFF: _ClassVar[NethelpersAutoHostnameKind]
    AUTO_HOSTNAME_KIND_ADDR: _ClassVar[NethelpersAutoHostnameKind]
    AUTO_HOSTNAME_KIND_STABLE: _ClassVar[NethelpersAutoHostnameKind]

class NethelpersBGPSessionState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BGP_SESSION_STATE_UNKNOWN: _ClassVar[NethelpersBGPSessionState]
    BGP_SESSION_STATE_IDLE: _ClassVar[NethelpersBGPSessionState]
    BGP_SESSION_STATE_CONNECT: _ClassVar[NethelpersBGPSessionState]
    BGP_SESSION_STATE_ACTIVE: _ClassVar[NethelpersBGPSessionState]
    BGP_SESSION_STATE_OPEN_SENT: _ClassVar[NethelpersBGPSessionState]
    BGP_SESSION_STATE_OPEN_CONFIRM: _ClassVar[NethelpersBGPSessionState]
    BGP_SESSION_STATE_ESTABLISHED: _ClassVar[NethelpersBGPSessionState]

class NethelpersBondMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BOND_MODE_ROUNDROBIN: _ClassVar[NethelpersBondMode]
    BOND_MODE_ACTIVE_BACKUP: _ClassVar[NethelpersBondMode]
    BOND_MODE_XOR: _ClassVar[NethelpersBondMode]
    BOND_MODE_BROADCAST: _ClassVar[NethelpersBondMode]
    BOND_MODE8023_AD: _ClassVar[NethelpersBondMode]
    BOND_MODE_TLB: _ClassVar[NethelpersBondMode]
    BOND_MODE_ALB: _ClassVar[NethelpersBondMode]

class NethelpersBondXmitHashPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BOND_XMIT_POLICY_LAYER2: _ClassVar[NethelpersBondXmitHashPolicy]
    BOND_XMIT_POLICY_LAYER34: _ClassVar[NethelpersBondXmitHashPolicy]
    BOND_XMIT_POLICY_LAYER23: _ClassVar[NethelpersBondXmitHashPolicy]
    BOND_XMIT_POLICY_ENCAP23: _ClassVar[NethelpersBondXmitHashPolicy]
    BOND_XMIT_POLICY_ENCAP34: _ClassVar[NethelpersBondXmitHashPolicy]

class NethelpersClientIdentifier(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CLIENT_IDENTIFIER_NONE: _ClassVar[NethelpersClientIdentifier]
    CLIENT_IDENTIFIER_MAC: _ClassVar[NethelpersClientIdentifier]
    CLIENT_IDENTIFIER_DUID: _ClassVar[NethelpersClientIdentifier]

class NethelpersConntrackState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NETHELPERS_CONNTRACKSTATE_UNSPECIFIED: _ClassVar[NethelpersConntrackState]
    CONNTRACK_STATE_NEW: _ClassVar[NethelpersConntrackState]
    CONNTRACK_STATE_RELATED: _ClassVar[NethelpersConntrackState]
    CONNTRACK_STATE_ESTABLISHED: _ClassVar[NethelpersConntrackState]
    CONNTRACK_STATE_INVALID: _ClassVar[NethelpersConntrackState]

class NethelpersDNSProtocol(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DNS_PROTOCOL_DEFAULT: _ClassVar[NethelpersDNSProtocol]
    DNS_PROTOCOL_DNS_OVER_TLS: _ClassVar[NethelpersDNSProtocol]
    DNS_PROTOCOL_DNS_OVER_HTTP: _ClassVar[NethelpersDNSProtocol]

class NethelpersDuplex(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HALF: _ClassVar[NethelpersDuplex]
    FULL: _ClassVar[NethelpersDuplex]
    UNKNOWN: _ClassVar[NethelpersDuplex]

class NethelpersFailOverMAC(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FAIL_OVER_MAC_NONE: _ClassVar[NethelpersFailOverMAC]
    FAIL_OVER_MAC_ACTIVE: _ClassVar[NethelpersFailOverMAC]
    FAIL_OVER_MAC_FOLLOW: _ClassVar[NethelpersFailOverMAC]

class NethelpersFamily(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NETHELPERS_FAMILY_UNSPECIFIED: _ClassVar[NethelpersFamily]
    FAMILY_INET4: _ClassVar[NethelpersFamily]
    FAMILY_INET6: _ClassVar[NethelpersFamily]

class NethelpersICMPType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NETHELPERS_ICMPTYPE_UNSPECIFIED: _ClassVar[NethelpersICMPType]
    ICMP_TYPE_TIMESTAMP_REQUEST: _ClassVar[NethelpersICMPType]
    ICMP_TYPE_TIMESTAMP_REPLY: _ClassVar[NethelpersICMPType]
    ICMP_TYPE_ADDRESS_MASK_REQUEST: _ClassVar[NethelpersICMPType]
    ICMP_TYPE_ADDRESS_MASK_REPLY: _ClassVar[NethelpersICMPType]

class NethelpersLACPRate(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LACP_RATE_SLOW: _ClassVar[NethelpersLACPRate]
    LACP_RATE_FAST: _ClassVar[NethelpersLACPRate]

class NethelpersLinkType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LINK_NETROM: _ClassVar[NethelpersLinkType]
    LINK_ETHER: _ClassVar[NethelpersLinkType]
    LINK_EETHER: _ClassVar[NethelpersLinkType]
    LINK_AX25: _ClassVar[NethelpersLinkType]
    LINK_PRONET: _ClassVar[NethelpersLinkType]
    LINK_CHAOS: _ClassVar[NethelpersLinkType]
    LINK_IEE802: _ClassVar[NethelpersLinkType]
    LINK_ARCNET: _ClassVar[NethelpersLinkType]
    LINK_ATALK: _ClassVar[NethelpersLinkType]
    LINK_DLCI: _ClassVar[NethelpersLinkType]
    LINK_ATM: _ClassVar[NethelpersLinkType]
    LINK_METRICOM: _ClassVar[NethelpersLinkType]
    LINK_IEEE1394: _ClassVar[NethelpersLinkType]
    LINK_EUI64: _ClassVar[NethelpersLinkType]
    LINK_INFINIBAND: _ClassVar[NethelpersLinkType]
    LINK_SLIP: _ClassVar[NethelpersLinkType]
    LINK_CSLIP: _ClassVar[NethelpersLinkType]
    LINK_SLIP6: _ClassVar[NethelpersLinkType]
    LINK_CSLIP6: _ClassVar[NethelpersLinkType]
    LINK_RSRVD: _ClassVar[NethelpersLinkType]
    LINK_ADAPT: _ClassVar[NethelpersLinkType]
    LINK_ROSE: _ClassVar[NethelpersLinkType]
    LINK_X25: _ClassVar[NethelpersLinkType]
    LINK_HWX25: _ClassVar[NethelpersLinkType]
    LINK_CAN: _ClassVar[NethelpersLinkType]
    LINK_PPP: _ClassVar[NethelpersLinkType]
    LINK_CISCO: _ClassVar[NethelpersLinkType]
    LINK_HDLC: _ClassVar[NethelpersLinkType]
    LINK_LAPB: _ClassVar[NethelpersLinkType]
    LINK_DDCMP: _ClassVar[NethelpersLinkType]
    LINK_RAWHDLC: _ClassVar[NethelpersLinkType]
    LINK_TUNNEL: _ClassVar[NethelpersLinkType]
    LINK_TUNNEL6: _ClassVar[NethelpersLinkType]
    LINK_FRAD: _ClassVar[NethelpersLinkType]
    LINK_SKIP: _ClassVar[NethelpersLinkType]
    LINK_LOOPBCK: _ClassVar[NethelpersLinkType]
    LINK_LOCALTLK: _ClassVar[NethelpersLinkType]
    LINK_FDDI: _ClassVar[NethelpersLinkType]
    LINK_BIF: _ClassVar[NethelpersLinkType]
    LINK_SIT: _ClassVar[NethelpersLinkType]
    LINK_IPDDP: _ClassVar[NethelpersLinkType]
    LINK_IPGRE: _ClassVar[NethelpersLinkType]
    LINK_PIMREG: _ClassVar[NethelpersLinkType]
    LINK_HIPPI: _ClassVar[NethelpersLinkType]
    LINK_ASH: _ClassVar[NethelpersLinkType]
    LINK_ECONET: _ClassVar[NethelpersLinkType]
    LINK_IRDA: _ClassVar[NethelpersLinkType]
    LINK_FCPP: _ClassVar[NethelpersLinkType]
    LINK_FCAL: _ClassVar[NethelpersLinkType]
    LINK_FCPL: _ClassVar[NethelpersLinkType]
    LINK_FCFABRIC: _ClassVar[NethelpersLinkType]
    LINK_FCFABRIC1: _ClassVar[NethelpersLinkType]
    LINK_FCFABRIC2: _ClassVar[NethelpersLinkType]
    LINK_FCFABRIC3: _ClassVar[NethelpersLinkType]
    LINK_FCFABRIC4: _ClassVar[NethelpersLinkType]
    LINK_FCFABRIC5: _ClassVar[NethelpersLinkType]
    LINK_FCFABRIC6: _ClassVar[NethelpersLinkType]
    LINK_FCFABRIC7: _ClassVar[NethelpersLinkType]
    LINK_FCFABRIC8: _ClassVar[NethelpersLinkType]
    LINK_FCFABRIC9: _ClassVar[NethelpersLinkType]
    LINK_FCFABRIC10: _ClassVar[NethelpersLinkType]
    LINK_FCFABRIC11: _ClassVar[NethelpersLinkType]
    LINK_FCFABRIC12: _ClassVar[NethelpersLinkType]
    LINK_IEE802TR: _ClassVar[NethelpersLinkType]
    LINK_IEE80211: _ClassVar[NethelpersLinkType]
    LINK_IEE80211PRISM: _ClassVar[NethelpersLinkType]
    LINK_IEE80211_RADIOTAP: _ClassVar[NethelpersLinkType]
    LINK_IEE8021154: _ClassVar[NethelpersLinkType]
    LINK_IEE8021154MONITOR: _ClassVar[NethelpersLinkType]
    LINK_PHONET: _ClassVar[NethelpersLinkType]
    LINK_PHONETPIPE: _ClassVar[NethelpersLinkType]
    LINK_CAIF: _ClassVar[NethelpersLinkType]
    LINK_IP6GRE: _ClassVar[NethelpersLinkType]
    LINK_NETLINK: _ClassVar[NethelpersLinkType]
    LINK6_LOWPAN: _ClassVar[NethelpersLinkType]
    LINK_VOID: _ClassVar[NethelpersLinkType]
    LINK_NONE: _ClassVar[NethelpersLinkType]

class NethelpersMatchOperator(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OPERATOR_EQUAL: _ClassVar[NethelpersMatchOperator]
    OPERATOR_NOT_EQUAL: _ClassVar[NethelpersMatchOperator]

class NethelpersNfTablesChainHook(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHAIN_HOOK_PREROUTING: _ClassVar[NethelpersNfTablesChainHook]
    CHAIN_HOOK_INPUT: _ClassVar[NethelpersNfTablesChainHook]
    CHAIN_HOOK_FORWARD: _ClassVar[NethelpersNfTablesChainHook]
    CHAIN_HOOK_OUTPUT: _ClassVar[NethelpersNfTablesChainHook]
    CHAIN_HOOK_POSTROUTING: _ClassVar[NethelpersNfTablesChainHook]

class NethelpersNfTablesChainPriority(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NETHELPERS_NFTABLESCHAINPRIORITY_UNSPECIFIED: _ClassVar[NethelpersNfTablesChainPriority]
    CHAIN_PRIORITY_FIRST: _ClassVar[NethelpersNfTablesChainPriority]
    CHAIN_PRIORITY_CONNTRACK_DEFRAG: _ClassVar[NethelpersNfTablesChainPriority]
    CHAIN_PRIORITY_RAW: _ClassVar[NethelpersNfTablesChainPriority]
    CHAIN_PRIORITY_SE_LINUX_FIRST: _ClassVar[NethelpersNfTablesChainPriority]
    CHAIN_PRIORITY_CONNTRACK: _ClassVar[NethelpersNfTablesChainPriority]
    CHAIN_PRIORITY_MANGLE: _ClassVar[NethelpersNfTablesChainPriority]
    CHAIN_PRIORITY_NAT_DEST: _ClassVar[NethelpersNfTablesChainPriority]
    CHAIN_PRIORITY_FILTER: _ClassVar[NethelpersNfTablesChainPriority]
    CHAIN_PRIORITY_SECURITY: _ClassVar[NethelpersNfTablesChainPriority]
    CHAIN_PRIORITY_NAT_SOURCE: _ClassVar[NethelpersNfTablesChainPriority]
    CHAIN_PRIORITY_SE_LINUX_LAST: _ClassVar[NethelpersNfTablesChainPriority]
    CHAIN_PRIORITY_CONNTRACK_HELPER: _ClassVar[NethelpersNfTablesChainPriority]
    CHAIN_PRIORITY_LAST: _ClassVar[NethelpersNfTablesChainPriority]

class NethelpersNfTablesVerdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VERDICT_DROP: _ClassVar[NethelpersNfTablesVerdict]
    VERDICT_ACCEPT: _ClassVar[NethelpersNfTablesVerdict]

class NethelpersOperationalState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OPER_STATE_UNKNOWN: _ClassVar[NethelpersOperationalState]
    OPER_STATE_NOT_PRESENT: _ClassVar[NethelpersOperationalState]
    OPER_STATE_DOWN: _ClassVar[NethelpersOperationalState]
    OPER_STATE_LOWER_LAYER_DOWN: _ClassVar[NethelpersOperationalState]
    OPER_STATE_TESTING: _ClassVar[NethelpersOperationalState]
    OPER_STATE_DORMANT: _ClassVar[NethelpersOperationalState]
    OPER_STATE_UP: _ClassVar[NethelpersOperationalState]

class NethelpersPort(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TWISTED_PAIR: _ClassVar[NethelpersPort]
    AUI: _ClassVar[NethelpersPort]
    MII: _ClassVar[NethelpersPort]
    FIBRE: _ClassVar[NethelpersPort]
    BNC: _ClassVar[NethelpersPort]
    DIRECT_ATTACH: _ClassVar[NethelpersPort]
    NONE: _ClassVar[NethelpersPort]
    OTHER: _ClassVar[NethelpersPort]

class NethelpersPrimaryReselect(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRIMARY_RESELECT_ALWAYS: _ClassVar[NethelpersPrimaryReselect]
    PRIMARY_RESELECT_BETTER: _ClassVar[NethelpersPrimaryReselect]
    PRIMARY_RESELECT_FAILURE: _ClassVar[NethelpersPrimaryReselect]

class NethelpersProtocol(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NETHELPERS_PROTOCOL_UNSPECIFIED: _ClassVar[NethelpersProtocol]
    PROTOCOL_ICMP: _ClassVar[NethelpersProtocol]
    PROTOCOL_TCP: _ClassVar[NethelpersProtocol]
    PROTOCOL_UDP: _ClassVar[NethelpersProtocol]
    PROTOCOL_ICM_PV6: _ClassVar[NethelpersProtocol]

class NethelpersRouteFlag(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NETHELPERS_ROUTEFLAG_UNSPECIFIED: _ClassVar[NethelpersRouteFlag]
    ROUTE_NOTIFY: _ClassVar[NethelpersRouteFlag]
    ROUTE_CLONED: _ClassVar[NethelpersRouteFlag]
    ROUTE_EQUALIZE: _ClassVar[NethelpersRouteFlag]
    ROUTE_PREFIX: _ClassVar[NethelpersRouteFlag]
    ROUTE_LOOKUP_TABLE: _ClassVar[NethelpersRouteFlag]
    ROUTE_FIB_MATCH: _ClassVar[NethelpersRouteFlag]
    ROUTE_OFFLOAD: _ClassVar[NethelpersRouteFlag]
    ROUTE_TRAP: _ClassVar[NethelpersRouteFlag]

class NethelpersRouteProtocol(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROTOCOL_UNSPEC: _ClassVar[NethelpersRouteProtocol]
    PROTOCOL_REDIRECT: _ClassVar[NethelpersRouteProtocol]
    PROTOCOL_KERNEL: _ClassVar[NethelpersRouteProtocol]
    PROTOCOL_BOOT: _ClassVar[NethelpersRouteProtocol]
    PROTOCOL_STATIC: _ClassVar[NethelpersRouteProtocol]
    PROTOCOL_RA: _ClassVar[NethelpersRouteProtocol]
    PROTOCOL_MRT: _ClassVar[NethelpersRouteProtocol]
    PROTOCOL_ZEBRA: _ClassVar[NethelpersRouteProtocol]
    PROTOCOL_BIRD: _ClassVar[NethelpersRouteProtocol]
    PROTOCOL_DNROUTED: _ClassVar[NethelpersRouteProtocol]
    PROTOCOL_XORP: _ClassVar[NethelpersRouteProtocol]
    PROTOCOL_NTK: _ClassVar[NethelpersRouteProtocol]
    PROTOCOL_DHCP: _ClassVar[NethelpersRouteProtocol]
    PROTOCOL_MRTD: _ClassVar[NethelpersRouteProtocol]
    PROTOCOL_KEEPALIVED: _ClassVar[NethelpersRouteProtocol]
    PROTOCOL_BABEL: _ClassVar[NethelpersRouteProtocol]
    PROTOCOL_OPENR: _ClassVar[NethelpersRouteProtocol]
    PROTOCOL_BGP: _ClassVar[NethelpersRouteProtocol]
    PROTOCOL_ISIS: _ClassVar[NethelpersRouteProtocol]
    PROTOCOL_OSPF: _ClassVar[NethelpersRouteProtocol]
    PROTOCOL_RIP: _ClassVar[NethelpersRouteProtocol]
    PROTOCOL_EIGRP: _ClassVar[NethelpersRouteProtocol]

class NethelpersRouteType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TYPE_UNSPEC: _ClassVar[NethelpersRouteType]
    TYPE_UNICAST: _ClassVar[NethelpersRouteType]
    TYPE_LOCAL: _ClassVar[NethelpersRouteType]
    TYPE_BROADCAST: _ClassVar[NethelpersRouteType]
    TYPE_ANYCAST: _ClassVar[NethelpersRouteType]
    TYPE_MULTICAST: _ClassVar[NethelpersRouteType]
    TYPE_BLACKHOLE: _ClassVar[NethelpersRouteType]
    TYPE_UNREACHABLE: _ClassVar[NethelpersRouteType]
    TYPE_PROHIBIT: _ClassVar[NethelpersRouteType]
    TYPE_THROW: _ClassVar[NethelpersRouteType]
    TYPE_NAT: _ClassVar[NethelpersRouteType]
    TYPE_X_RESOLVE: _ClassVar[NethelpersRouteType]

class NethelpersRoutingRuleAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROUTING_RULE_ACTION_UNSPEC: _ClassVar[NethelpersRoutingRuleAction]
    ROUTING_RULE_ACTION_UNICAST: _ClassVar[NethelpersRoutingRuleAction]
    ROUTING_RULE_ACTION_BLACKHOLE: _ClassVar[NethelpersRoutingRuleAction]
    ROUTING_RULE_ACTION_UNREACHABLE: _ClassVar[NethelpersRoutingRuleAction]
    ROUTING_RULE_ACTION_PROHIBIT: _ClassVar[NethelpersRoutingRuleAction]

class NethelpersRoutingTable(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TABLE_UNSPEC: _ClassVar[NethelpersRoutingTable]
    TABLE1: _ClassVar[NethelpersRoutingTable]
    TABLE2: _ClassVar[NethelpersRoutingTable]
    TABLE3: _ClassVar[NethelpersRoutingTable]
    TABLE4: _ClassVar[NethelpersRoutingTable]
    TABLE5: _ClassVar[NethelpersRoutingTable]
    TABLE6: _ClassVar[NethelpersRoutingTable]
    TABLE7: _ClassVar[NethelpersRoutingTable]
    TABLE8: _ClassVar[NethelpersRoutingTable]
    TABLE9: _ClassVar[NethelpersRoutingTable]
    TABLE10: _ClassVar[NethelpersRoutingTable]
    TABLE11: _ClassVar[NethelpersRoutingTable]
    TABLE12: _ClassVar[NethelpersRoutingTable]
    TABLE13: _ClassVar[NethelpersRoutingTable]
    TABLE14: _ClassVar[NethelpersRoutingTable]
    TABLE15: _ClassVar[NethelpersRoutingTable]
    TABLE16: _ClassVar[NethelpersRoutingTable]
    TABLE17: _ClassVar[NethelpersRoutingTable]
    TABLE18: _ClassVar[NethelpersRoutingTable]
    TABLE19: _ClassVar[NethelpersRoutingTable]
    TABLE20: _ClassVar[NethelpersRoutingTable]
    TABLE21: _ClassVar[NethelpersRoutingTable]
    TABLE22: _ClassVar[NethelpersRoutingTable]
    TABLE23: _ClassVar[NethelpersRoutingTable]
    TABLE24: _ClassVar[NethelpersRoutingTable]
    TABLE25: _ClassVar[NethelpersRoutingTable]
    TABLE26: _ClassVar[NethelpersRoutingTable]
    TABLE27: _ClassVar[NethelpersRoutingTable]
    TABLE28: _ClassVar[NethelpersRoutingTable]
    TABLE29: _ClassVar[NethelpersRoutingTable]
    TABLE30: _ClassVar[NethelpersRoutingTable]
    TABLE31: _ClassVar[NethelpersRoutingTable]
    TABLE32: _ClassVar[NethelpersRoutingTable]
    TABLE33: _ClassVar[NethelpersRoutingTable]
    TABLE34: _ClassVar[NethelpersRoutingTable]
    TABLE35: _ClassVar[NethelpersRoutingTable]
    TABLE36: _ClassVar[NethelpersRoutingTable]
    TABLE37: _ClassVar[NethelpersRoutingTable]
    TABLE38: _ClassVar[NethelpersRoutingTable]
    TABLE39: _ClassVar[NethelpersRoutingTable]
    TABLE40: _ClassVar[NethelpersRoutingTable]
    TABLE41: _ClassVar[NethelpersRoutingTable]
    TABLE42: _ClassVar[NethelpersRoutingTable]
    TABLE43: _ClassVar[NethelpersRoutingTable]
    TABLE44: _ClassVar[NethelpersRoutingTable]
    TABLE45: _ClassVar[NethelpersRoutingTable]
    TABLE46: _ClassVar[NethelpersRoutingTable]
    TABLE47: _ClassVar[NethelpersRoutingTable]
    TABLE48: _ClassVar[NethelpersRoutingTable]
    TABLE49: _ClassVar[NethelpersRoutingTable]
    TABLE50: _ClassVar[NethelpersRoutingTable]
    TABLE51: _ClassVar[NethelpersRoutingTable]
    TABLE52: _ClassVar[NethelpersRoutingTable]
    TABLE53: _ClassVar[NethelpersRoutingTable]
    TABLE54: _ClassVar[NethelpersRoutingTable]
    TABLE55: _ClassVar[NethelpersRoutingTable]
    TABLE56: _ClassVar[NethelpersRoutingTable]
    TABLE57: _ClassVar[NethelpersRoutingTable]
    TABLE58: _ClassVar[NethelpersRoutingTable]
    TABLE59: _ClassVar[NethelpersRoutingTable]
    TABLE60: _ClassVar[NethelpersRoutingTable]
    TABLE61: _ClassVar[NethelpersRoutingTable]
    TABLE62: _ClassVar[NethelpersRoutingTable]
    TABLE63: _ClassVar[NethelpersRoutingTable]
    TABLE64: _ClassVar[NethelpersRoutingTable]
    TABLE65: _ClassVar[NethelpersRoutingTable]
    TABLE66: _ClassVar[NethelpersRoutingTable]
    TABLE67: _ClassVar[NethelpersRoutingTable]
    TABLE68: _ClassVar[NethelpersRoutingTable]
    TABLE69: _ClassVar[NethelpersRoutingTable]
    TABLE70: _ClassVar[NethelpersRoutingTable]
    TABLE71: _ClassVar[NethelpersRoutingTable]
    TABLE72: _ClassVar[NethelpersRoutingTable]
    TABLE73: _ClassVar[NethelpersRoutingTable]
    TABLE74: _ClassVar[NethelpersRoutingTable]
    TABLE75: _ClassVar[NethelpersRoutingTable]
    TABLE76: _ClassVar[NethelpersRoutingTable]
    TABLE77: _ClassVar[NethelpersRoutingTable]
    TABLE78: _ClassVar[NethelpersRoutingTable]
    TABLE79: _ClassVar[NethelpersRoutingTable]
    TABLE80: _ClassVar[NethelpersRoutingTable]
    TABLE81: _ClassVar[NethelpersRoutingTable]
    TABLE82: _ClassVar[NethelpersRoutingTable]
    TABLE83: _ClassVar[NethelpersRoutingTable]
    TABLE84: _ClassVar[NethelpersRoutingTable]
    TABLE85: _ClassVar[NethelpersRoutingTable]
    TABLE86: _ClassVar[NethelpersRoutingTable]
    TABLE87: _ClassVar[NethelpersRoutingTable]
    TABLE88: _ClassVar[NethelpersRoutingTable]
    TABLE89: _ClassVar[NethelpersRoutingTable]
    TABLE90: _ClassVar[NethelpersRoutingTable]
    TABLE91: _ClassVar[NethelpersRoutingTable]
    TABLE92: _ClassVar[NethelpersRoutingTable]
    TABLE93: _ClassVar[NethelpersRoutingTable]
    TABLE94: _ClassVar[NethelpersRoutingTable]
    TABLE95: _ClassVar[NethelpersRoutingTable]
    TABLE96: _ClassVar[NethelpersRoutingTable]
    TABLE97: _ClassVar[NethelpersRoutingTable]
    TABLE98: _ClassVar[NethelpersRoutingTable]
    TABLE99: _ClassVar[NethelpersRoutingTable]
    TABLE100: _ClassVar[NethelpersRoutingTable]
    TABLE101: _ClassVar[NethelpersRoutingTable]
    TABLE102: _ClassVar[NethelpersRoutingTable]
    TABLE103: _ClassVar[NethelpersRoutingTable]
    TABLE104: _ClassVar[NethelpersRoutingTable]
    TABLE105: _ClassVar[NethelpersRoutingTable]
    TABLE106: _ClassVar[NethelpersRoutingTable]
    TABLE107: _ClassVar[NethelpersRoutingTable]
    TABLE108: _ClassVar[NethelpersRoutingTable]
    TABLE109: _ClassVar[NethelpersRoutingTable]
    TABLE110: _ClassVar[NethelpersRoutingTable]
    TABLE111: _ClassVar[NethelpersRoutingTable]
    TABLE112: _ClassVar[NethelpersRoutingTable]
    TABLE113: _ClassVar[NethelpersRoutingTable]
    TABLE114: _ClassVar[NethelpersRoutingTable]
    TABLE115: _ClassVar[NethelpersRoutingTable]
    TABLE116: _ClassVar[NethelpersRoutingTable]
    TABLE117: _ClassVar[NethelpersRoutingTable]
    TABLE118: _ClassVar[NethelpersRoutingTable]
    TABLE119: _ClassVar[NethelpersRoutingTable]
    TABLE120: _ClassVar[NethelpersRoutingTable]
    TABLE121: _ClassVar[NethelpersRoutingTable]
    TABLE122: _ClassVar[NethelpersRoutingTable]
    TABLE123: _ClassVar[NethelpersRoutingTable]
    TABLE124: _ClassVar[NethelpersRoutingTable]
    TABLE125: _ClassVar[NethelpersRoutingTable]
    TABLE126: _ClassVar[NethelpersRoutingTable]
    TABLE127: _ClassVar[NethelpersRoutingTable]
    TABLE128: _ClassVar[NethelpersRoutingTable]
    TABLE129: _ClassVar[NethelpersRoutingTable]
    TABLE130: _ClassVar[NethelpersRoutingTable]
    TABLE131: _ClassVar[NethelpersRoutingTable]
    TABLE132: _ClassVar[NethelpersRoutingTable]
    TABLE133: _ClassVar[NethelpersRoutingTable]
    TABLE134: _ClassVar[NethelpersRoutingTable]
    TABLE135: _ClassVar[NethelpersRoutingTable]
    TABLE136: _ClassVar[NethelpersRoutingTable]
    TABLE137: _ClassVar[NethelpersRoutingTable]
    TABLE138: _ClassVar[NethelpersRoutingTable]
    TABLE139: _ClassVar[NethelpersRoutingTable]
    TABLE140: _ClassVar[NethelpersRoutingTable]
    TABLE141: _ClassVar[NethelpersRoutingTable]
    TABLE142: _ClassVar[NethelpersRoutingTable]
    TABLE143: _ClassVar[NethelpersRoutingTable]
    TABLE144: _ClassVar[NethelpersRoutingTable]
    TABLE145: _ClassVar[NethelpersRoutingTable]
    TABLE146: _ClassVar[NethelpersRoutingTable]
    TABLE147: _ClassVar[NethelpersRoutingTable]
    TABLE148: _ClassVar[NethelpersRoutingTable]
    TABLE149: _ClassVar[NethelpersRoutingTable]
    TABLE150: _ClassVar[NethelpersRoutingTable]
    TABLE151: _ClassVar[NethelpersRoutingTable]
    TABLE152: _ClassVar[NethelpersRoutingTable]
    TABLE153: _ClassVar[NethelpersRoutingTable]
    TABLE154: _ClassVar[NethelpersRoutingTable]
    TABLE155: _ClassVar[NethelpersRoutingTable]
    TABLE156: _ClassVar[NethelpersRoutingTable]
    TABLE157: _ClassVar[NethelpersRoutingTable]
    TABLE158: _ClassVar[NethelpersRoutingTable]
    TABLE159: _ClassVar[NethelpersRoutingTable]
    TABLE160: _ClassVar[NethelpersRoutingTable]
    TABLE161: _ClassVar[NethelpersRoutingTable]
    TABLE162: _ClassVar[NethelpersRoutingTable]
    TABLE163: _ClassVar[NethelpersRoutingTable]
    TABLE164: _ClassVar[NethelpersRoutingTable]
    TABLE165: _ClassVar[NethelpersRoutingTable]
    TABLE166: _ClassVar[NethelpersRoutingTable]
    TABLE167: _ClassVar[NethelpersRoutingTable]
    TABLE168: _ClassVar[NethelpersRoutingTable]
    TABLE169: _ClassVar[NethelpersRoutingTable]
    TABLE170: _ClassVar[NethelpersRoutingTable]
    TABLE171: _ClassVar[NethelpersRoutingTable]
    TABLE172: _ClassVar[NethelpersRoutingTable]
    TABLE173: _ClassVar[NethelpersRoutingTable]
    TABLE174: _ClassVar[NethelpersRoutingTable]
    TABLE175: _ClassVar[NethelpersRoutingTable]
    TABLE176: _ClassVar[NethelpersRoutingTable]
    TABLE177: _ClassVar[NethelpersRoutingTable]
    TABLE178: _ClassVar[NethelpersRoutingTable]
    TABLE179: _ClassVar[NethelpersRoutingTable]
    TABLE180: _ClassVar[NethelpersRoutingTable]
    TABLE181: _ClassVar[NethelpersRoutingTable]
    TABLE182: _ClassVar[NethelpersRoutingTable]
    TABLE183: _ClassVar[NethelpersRoutingTable]
    TABLE184: _ClassVar[NethelpersRoutingTable]
    TABLE185: _ClassVar[NethelpersRoutingTable]
    TABLE186: _ClassVar[NethelpersRoutingTable]
    TABLE187: _ClassVar[NethelpersRoutingTable]
    TABLE188: _ClassVar[NethelpersRoutingTable]
    TABLE189: _ClassVar[NethelpersRoutingTable]
    TABLE190: _ClassVar[NethelpersRoutingTable]
    TABLE191: _ClassVar[NethelpersRoutingTable]
    TABLE192: _ClassVar[NethelpersRoutingTable]
    TABLE193: _ClassVar[NethelpersRoutingTable]
    TABLE194: _ClassVar[NethelpersRoutingTable]
    TABLE195: _ClassVar[NethelpersRoutingTable]
    TABLE196: _ClassVar[NethelpersRoutingTable]
    TABLE197: _ClassVar[NethelpersRoutingTable]
    TABLE198: _ClassVar[NethelpersRoutingTable]
    TABLE199: _ClassVar[NethelpersRoutingTable]
    TABLE200: _ClassVar[NethelpersRoutingTable]
    TABLE201: _ClassVar[NethelpersRoutingTable]
    TABLE202: _ClassVar[NethelpersRoutingTable]
    TABLE203: _ClassVar[NethelpersRoutingTable]
    TABLE204: _ClassVar[NethelpersRoutingTable]
    TABLE205: _ClassVar[NethelpersRoutingTable]
    TABLE206: _ClassVar[NethelpersRoutingTable]
    TABLE207: _ClassVar[NethelpersRoutingTable]
    TABLE208: _ClassVar[NethelpersRoutingTable]
    TABLE209: _ClassVar[NethelpersRoutingTable]
    TABLE210: _ClassVar[NethelpersRoutingTable]
    TABLE211: _ClassVar[NethelpersRoutingTable]
    TABLE212: _ClassVar[NethelpersRoutingTable]
    TABLE213: _ClassVar[NethelpersRoutingTable]
    TABLE214: _ClassVar[NethelpersRoutingTable]
    TABLE215: _ClassVar[NethelpersRoutingTable]
    TABLE216: _ClassVar[NethelpersRoutingTable]
    TABLE217: _ClassVar[NethelpersRoutingTable]
    TABLE218: _ClassVar[NethelpersRoutingTable]
    TABLE219: _ClassVar[NethelpersRoutingTable]
    TABLE220: _ClassVar[NethelpersRoutingTable]
    TABLE221: _ClassVar[NethelpersRoutingTable]
    TABLE222: _ClassVar[NethelpersRoutingTable]
    TABLE223: _ClassVar[NethelpersRoutingTable]
    TABLE224: _ClassVar[NethelpersRoutingTable]
    TABLE225: _ClassVar[NethelpersRoutingTable]
    TABLE226: _ClassVar[NethelpersRoutingTable]
    TABLE227: _ClassVar[NethelpersRoutingTable]
    TABLE228: _ClassVar[NethelpersRoutingTable]
    TABLE229: _ClassVar[NethelpersRoutingTable]
    TABLE230: _ClassVar[NethelpersRoutingTable]
    TABLE231: _ClassVar[NethelpersRoutingTable]
    TABLE232: _ClassVar[NethelpersRoutingTable]
    TABLE233: _ClassVar[NethelpersRoutingTable]
    TABLE234: _ClassVar[NethelpersRoutingTable]
    TABLE235: _ClassVar[NethelpersRoutingTable]
    TABLE236: _ClassVar[NethelpersRoutingTable]
    TABLE237: _ClassVar[NethelpersRoutingTable]
    TABLE238: _ClassVar[NethelpersRoutingTable]
    TABLE239: _ClassVar[NethelpersRoutingTable]
    TABLE240: _ClassVar[NethelpersRoutingTable]
    TABLE241: _ClassVar[NethelpersRoutingTable]
    TABLE242: _ClassVar[NethelpersRoutingTable]
    TABLE243: _ClassVar[NethelpersRoutingTable]
    TABLE244: _ClassVar[NethelpersRoutingTable]
    TABLE245: _ClassVar[NethelpersRoutingTable]
    TABLE246: _ClassVar[NethelpersRoutingTable]
    TABLE247: _ClassVar[NethelpersRoutingTable]
    TABLE248: _ClassVar[NethelpersRoutingTable]
    TABLE249: _ClassVar[NethelpersRoutingTable]
    TABLE250: _ClassVar[NethelpersRoutingTable]
    TABLE251: _ClassVar[NethelpersRoutingTable]
    TABLE252: _ClassVar[NethelpersRoutingTable]
    TABLE_DEFAULT: _ClassVar[NethelpersRoutingTable]
    TABLE_MAIN: _ClassVar[NethelpersRoutingTable]
    TABLE_LOCAL: _ClassVar[NethelpersRoutingTable]

class NethelpersScope(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SCOPE_GLOBAL: _ClassVar[NethelpersScope]
    SCOPE_SITE: _ClassVar[NethelpersScope]
    SCOPE_LINK: _ClassVar[NethelpersScope]
    SCOPE_HOST: _ClassVar[NethelpersScope]
    SCOPE_NOWHERE: _ClassVar[NethelpersScope]

class NethelpersVLANProtocol(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NETHELPERS_VLANPROTOCOL_UNSPECIFIED: _ClassVar[NethelpersVLANProtocol]
    VLAN_PROTOCOL8021_Q: _ClassVar[NethelpersVLANProtocol]
    VLAN_PROTOCOL8021_AD: _ClassVar[NethelpersVLANProtocol]

class NethelpersWOLMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NETHELPERS_WOLMODE_UNSPECIFIED: _ClassVar[NethelpersWOLMode]
    WOL_MODE_PHY: _ClassVar[NethelpersWOLMode]
    WOL_MODE_UNICAST: _ClassVar[NethelpersWOLMode]
    WOL_MODE_MULTICAST: _ClassVar[NethelpersWOLMode]
    WOL_MODE_BROADCAST: _ClassVar[NethelpersWOLMode]
    WOL_MODE_MAGIC: _ClassVar[NethelpersWOLMode]
    WOL_MODE_MAGIC_SECURE: _ClassVar[NethelpersWOLMode]
    WOL_MODE_FILTER: _ClassVar[NethelpersWOLMode]

class BlockEncryptionKeyType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ENCRYPTION_KEY_STATIC: _ClassVar[BlockEncryptionKeyType]
    ENCRYPTION_KEY_NODE_ID: _ClassVar[BlockEncryptionKeyType]
    ENCRYPTION_KEY_KMS: _ClassVar[BlockEncryptionKeyType]
    ENCRYPTION_KEY_TPM: _ClassVar[BlockEncryptionKeyType]

class BlockEncryptionProviderType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ENCRYPTION_PROVIDER_NONE: _ClassVar[BlockEncryptionProviderType]
    ENCRYPTION_PROVIDER_LUKS2: _ClassVar[BlockEncryptionProviderType]

class BlockFilesystemType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FILESYSTEM_TYPE_NONE: _ClassVar[BlockFilesystemType]
    FILESYSTEM_TYPE_XFS: _ClassVar[BlockFilesystemType]
    FILESYSTEM_TYPE_VFAT: _ClassVar[BlockFilesystemType]
    FILESYSTEM_TYPE_EXT4: _ClassVar[BlockFilesystemType]
    FILESYSTEM_TYPE_ISO9660: _ClassVar[BlockFilesystemType]
    FILESYSTEM_TYPE_SWAP: _ClassVar[BlockFilesystemType]
    FILESYSTEM_TYPE_VIRTIOFS: _ClassVar[BlockFilesystemType]
    FILESYSTEM_TYPE_BTRFS: _ClassVar[BlockFilesystemType]

class BlockFSParameterType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FS_PARAMETER_TYPE_STRING_VALUE: _ClassVar[BlockFSParameterType]
    FS_PARAMETER_TYPE_BOOLEAN_VALUE: _ClassVar[BlockFSParameterType]
    FS_PARAMETER_TYPE_BINARY_VALUE: _ClassVar[BlockFSParameterType]

class BlockVolumePhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VOLUME_PHASE_WAITING: _ClassVar[BlockVolumePhase]
    VOLUME_PHASE_FAILED: _ClassVar[BlockVolumePhase]
    VOLUME_PHASE_MISSING: _ClassVar[BlockVolumePhase]
    VOLUME_PHASE_LOCATED: _ClassVar[BlockVolumePhase]
    VOLUME_PHASE_PROVISIONED: _ClassVar[BlockVolumePhase]
    VOLUME_PHASE_PREPARED: _ClassVar[BlockVolumePhase]
    VOLUME_PHASE_READY: _ClassVar[BlockVolumePhase]
    VOLUME_PHASE_CLOSED: _ClassVar[BlockVolumePhase]

class BlockVolumeType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VOLUME_TYPE_PARTITION: _ClassVar[BlockVolumeType]
    VOLUME_TYPE_DISK: _ClassVar[BlockVolumeType]
    VOLUME_TYPE_TMPFS: _ClassVar[BlockVolumeType]
    VOLUME_TYPE_DIRECTORY: _ClassVar[BlockVolumeType]
    VOLUME_TYPE_SYMLINK: _ClassVar[BlockVolumeType]
    VOLUME_TYPE_OVERLAY: _ClassVar[BlockVolumeType]
    VOLUME_TYPE_EXTERNAL: _ClassVar[BlockVolumeType]

class StorageLVMLogicalVolumeType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LVM_LOGICAL_VOLUME_TYPE_LINEAR: _ClassVar[StorageLVMLogicalVolumeType]
    LVM_LOGICAL_VOLUME_TYPE_RAID1: _ClassVar[StorageLVMLogicalVolumeType]
    LVM_LOGICAL_VOLUME_TYPE_RAID0: _ClassVar[StorageLVMLogicalVolumeType]
    LVM_LOGICAL_VOLUME_TYPE_RAID10: _ClassVar[StorageLVMLogicalVolumeType]

class StorageMDArrayPhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MD_ARRAY_PHASE_UNKNOWN: _ClassVar[StorageMDArrayPhase]
    MD_ARRAY_PHASE_WAITING: _ClassVar[StorageMDArrayPhase]
    MD_ARRAY_PHASE_REBUILDING: _ClassVar[StorageMDArrayPhase]
    MD_ARRAY_PHASE_READY: _ClassVar[StorageMDArrayPhase]
    MD_ARRAY_PHASE_ERROR: _ClassVar[StorageMDArrayPhase]

class StorageMDLevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MD_LEVEL_RAID1: _ClassVar[StorageMDLevel]

class StorageMDMetadata(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MD_METADATA10: _ClassVar[StorageMDMetadata]
    MD_METADATA12: _ClassVar[StorageMDMetadata]

class NetworkConfigLayer(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONFIG_DEFAULT: _ClassVar[NetworkConfigLayer]
    CONFIG_CMDLINE: _ClassVar[NetworkConfigLayer]
    CONFIG_PLATFORM: _ClassVar[NetworkConfigLayer]
    CONFIG_OPERATOR: _ClassVar[NetworkConfigLayer]
    CONFIG_MACHINE_CONFIGURATION: _ClassVar[NetworkConfigLayer]

class NetworkOperator(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OPERATOR_DHCP4: _ClassVar[NetworkOperator]
    OPERATOR_DHCP6: _ClassVar[NetworkOperator]
    OPERATOR_VIP: _ClassVar[NetworkOperator]

class ContainersContainerImagePhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONTAINER_IMAGE_PHASE_PENDING: _ClassVar[ContainersContainerImagePhase]
    CONTAINER_IMAGE_PHASE_PULLING: _ClassVar[ContainersContainerImagePhase]
    CONTAINER_IMAGE_PHASE_READY: _ClassVar[ContainersContainerImagePhase]
    CONTAINER_IMAGE_PHASE_FAILED: _ClassVar[ContainersContainerImagePhase]

class ContainersContainerInstancePhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONTAINER_INSTANCE_PHASE_CREATED: _ClassVar[ContainersContainerInstancePhase]
    CONTAINER_INSTANCE_PHASE_RUNNING: _ClassVar[ContainersContainerInstancePhase]
    CONTAINER_INSTANCE_PHASE_TERMINATED: _ClassVar[ContainersContainerInstancePhase]
    CONTAINER_INSTANCE_PHASE_FAILED: _ClassVar[ContainersContainerInstancePhase]

class CriImageCacheStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    IMAGE_CACHE_STATUS_UNKNOWN: _ClassVar[CriImageCacheStatus]
    IMAGE_CACHE_STATUS_DISABLED: _ClassVar[CriImageCacheStatus]
    IMAGE_CACHE_STATUS_PREPARING: _ClassVar[CriImageCacheStatus]
    IMAGE_CACHE_STATUS_READY: _ClassVar[CriImageCacheStatus]

class CriImageCacheCopyStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    IMAGE_CACHE_COPY_STATUS_UNKNOWN: _ClassVar[CriImageCacheCopyStatus]
    IMAGE_CACHE_COPY_STATUS_SKIPPED: _ClassVar[CriImageCacheCopyStatus]
    IMAGE_CACHE_COPY_STATUS_PENDING: _ClassVar[CriImageCacheCopyStatus]
    IMAGE_CACHE_COPY_STATUS_READY: _ClassVar[CriImageCacheCopyStatus]

class KubespanPeerState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PEER_STATE_UNKNOWN: _ClassVar[KubespanPeerState]
    PEER_STATE_UP: _ClassVar[KubespanPeerState]
    PEER_STATE_DOWN: _ClassVar[KubespanPeerState]
KERNEL_MODULE_STATE_LIVE: RuntimeKernelModuleState
KERNEL_MODULE_STATE_LOADING: RuntimeKernelModuleState
KERNEL_MODULE_STATE_UNLOADING: RuntimeKernelModuleState
KERNEL_MODULE_STATE_BUILTIN: RuntimeKernelModuleState
KERNEL_MODULE_TYPE_UNKNOWN: RuntimeKernelModuleType
KERNEL_MODULE_TYPE_BUILTIN: RuntimeKernelModuleType
KERNEL_MODULE_TYPE_DYNAMIC: RuntimeKernelModuleType
MACHINE_STAGE_UNKNOWN: RuntimeMachineStage
MACHINE_STAGE_BOOTING: RuntimeMachineStage
MACHINE_STAGE_INSTALLING: RuntimeMachineStage
MACHINE_STAGE_MAINTENANCE: RuntimeMachineStage
MACHINE_STAGE_RUNNING: RuntimeMachineStage
MACHINE_STAGE_REBOOTING: RuntimeMachineStage
MACHINE_STAGE_SHUTTING_DOWN: RuntimeMachineStage
MACHINE_STAGE_RESETTING: RuntimeMachineStage
MACHINE_STAGE_UPGRADING: RuntimeMachineStage
SE_LINUX_STATE_DISABLED: RuntimeSELinuxState
SE_LINUX_STATE_PERMISSIVE: RuntimeSELinuxState
SE_LINUX_STATE_ENFORCING: RuntimeSELinuxState
FIPS_STATE_DISABLED: RuntimeFIPSState
FIPS_STATE_ENABLED: RuntimeFIPSState
FIPS_STATE_STRICT: RuntimeFIPSState
UNATTENDED_INSTALL_PHASE_PENDING: RuntimeUnattendedInstallPhase
UNATTENDED_INSTALL_PHASE_INSTALLING: RuntimeUnattendedInstallPhase
UNATTENDED_INSTALL_PHASE_INSTALLED: RuntimeUnattendedInstallPhase
UNATTENDED_INSTALL_PHASE_WAITING_FOR_REBOOT: RuntimeUnattendedInstallPhase
UNATTENDED_INSTALL_PHASE_FAILED: RuntimeUnattendedInstallPhase
TYPE_UNKNOWN: MachineType
TYPE_INIT: MachineType
TYPE_CONTROL_PLANE: MachineType
TYPE_WORKER: MachineType
NETHELPERS_ADDRESSFLAG_UNSPECIFIED: NethelpersAddressFlag
ADDRESS_TEMPORARY: NethelpersAddressFlag
ADDRESS_NO_DAD: NethelpersAddressFlag
ADDRESS_OPTIMISTIC: NethelpersAddressFlag
ADDRESS_DAD_FAILED: NethelpersAddressFlag
ADDRESS_HOME: NethelpersAddressFlag
ADDRESS_DEPRECATED: NethelpersAddressFlag
ADDRESS_TENTATIVE: NethelpersAddressFlag
ADDRESS_PERMANENT: NethelpersAddressFlag
ADDRESS_MANAGEMENT_TEMP: NethelpersAddressFlag
ADDRESS_NO_PREFIX_ROUTE: NethelpersAddressFlag
ADDRESS_MC_AUTO_JOIN: NethelpersAddressFlag
ADDRESS_STABLE_PRIVACY: NethelpersAddressFlag
ADDRESS_SORT_ALGORITHM_V1: NethelpersAddressSortAlgorithm
ADDRESS_SORT_ALGORITHM_V2: NethelpersAddressSortAlgorithm
ADLACP_ACTIVE_OFF: NethelpersADLACPActive
ADLACP_ACTIVE_ON: NethelpersADLACPActive
AD_SELECT_STABLE: NethelpersADSelect
AD_SELECT_BANDWIDTH: NethelpersADSelect
AD_SELECT_COUNT: NethelpersADSelect
ARP_ALL_TARGETS_ANY: NethelpersARPAllTargets
ARP_ALL_TARGETS_ALL: NethelpersARPAllTargets
ARP_VALIDATE_NONE: NethelpersARPValidate
ARP_VALIDATE_ACTIVE: NethelpersARPValidate
ARP_VALIDATE_BACKUP: NethelpersARPValidate
ARP_VALIDATE_ALL: NethelpersARPValidate
ARP_VALIDATE_FILTER: NethelpersARPValidate
ARP_VALIDATE_FILTER_ACTIVE: NethelpersARPValidate
ARP_VALIDATE_FILTER_BACKUP: NethelpersARPValidate
AUTO_HOSTNAME_KIND_OFF: NethelpersAutoHostnameKind
AUTO_HOSTNAME_KIND_ADDR: NethelpersAutoHostnameKind
AUTO_HOSTNAME_KIND_STABLE: NethelpersAutoHostnameKind
BGP_SESSION_STATE_UNKNOWN: NethelpersBGPSessionState
BGP_SESSION_STATE_IDLE: NethelpersBGPSessionState
BGP_SESSION_STATE_CONNECT: NethelpersBGPSessionState
BGP_SESSION_STATE_ACTIVE: NethelpersBGPSessionState
BGP_SESSION_STATE_OPEN_SENT: NethelpersBGPSessionState
BGP_SESSION_STATE_OPEN_CONFIRM: NethelpersBGPSessionState
BGP_SESSION_STATE_ESTABLISHED: NethelpersBGPSessionState
BOND_MODE_ROUNDROBIN: NethelpersBondMode
BOND_MODE_ACTIVE_BACKUP: NethelpersBondMode
BOND_MODE_XOR: NethelpersBondMode
BOND_MODE_BROADCAST: NethelpersBondMode
BOND_MODE8023_AD: NethelpersBondMode
BOND_MODE_TLB: NethelpersBondMode
BOND_MODE_ALB: NethelpersBondMode
BOND_XMIT_POLICY_LAYER2: NethelpersBondXmitHashPolicy
BOND_XMIT_POLICY_LAYER34: NethelpersBondXmitHashPolicy
BOND_XMIT_POLICY_LAYER23: NethelpersBondXmitHashPolicy
BOND_XMIT_POLICY_ENCAP23: NethelpersBondXmitHashPolicy
BOND_XMIT_POLICY_ENCAP34: NethelpersBondXmitHashPolicy
CLIENT_IDENTIFIER_NONE: NethelpersClientIdentifier
CLIENT_IDENTIFIER_MAC: NethelpersClientIdentifier
CLIENT_IDENTIFIER_DUID: NethelpersClientIdentifier
NETHELPERS_CONNTRACKSTATE_UNSPECIFIED: NethelpersConntrackState
CONNTRACK_STATE_NEW: NethelpersConntrackState
CONNTRACK_STATE_RELATED: NethelpersConntrackState
CONNTRACK_STATE_ESTABLISHED: NethelpersConntrackState
CONNTRACK_STATE_INVALID: NethelpersConntrackState
DNS_PROTOCOL_DEFAULT: NethelpersDNSProtocol
DNS_PROTOCOL_DNS_OVER_TLS: NethelpersDNSProtocol
DNS_PROTOCOL_DNS_OVER_HTTP: NethelpersDNSProtocol
HALF: NethelpersDuplex
FULL: NethelpersDuplex
UNKNOWN: NethelpersDuplex
FAIL_OVER_MAC_NONE: NethelpersFailOverMAC
FAIL_OVER_MAC_ACTIVE: NethelpersFailOverMAC
FAIL_OVER_MAC_FOLLOW: NethelpersFailOverMAC
NETHELPERS_FAMILY_UNSPECIFIED: NethelpersFamily
FAMILY_INET4: NethelpersFamily
FAMILY_INET6: NethelpersFamily
NETHELPERS_ICMPTYPE_UNSPECIFIED: NethelpersICMPType
ICMP_TYPE_TIMESTAMP_REQUEST: NethelpersICMPType
ICMP_TYPE_TIMESTAMP_REPLY: NethelpersICMPType
ICMP_TYPE_ADDRESS_MASK_REQUEST: NethelpersICMPType
ICMP_TYPE_ADDRESS_MASK_REPLY: NethelpersICMPType
LACP_RATE_SLOW: NethelpersLACPRate
LACP_RATE_FAST: NethelpersLACPRate
LINK_NETROM: NethelpersLinkType
LINK_ETHER: NethelpersLinkType
LINK_EETHER: NethelpersLinkType
LINK_AX25: NethelpersLinkType
LINK_PRONET: NethelpersLinkType
LINK_CHAOS: NethelpersLinkType
LINK_IEE802: NethelpersLinkType
LINK_ARCNET: NethelpersLinkType
LINK_ATALK: NethelpersLinkType
LINK_DLCI: NethelpersLinkType
LINK_ATM: NethelpersLinkType
LINK_METRICOM: NethelpersLinkType
LINK_IEEE1394: NethelpersLinkType
LINK_EUI64: NethelpersLinkType
LINK_INFINIBAND: NethelpersLinkType
LINK_SLIP: NethelpersLinkType
LINK_CSLIP: NethelpersLinkType
LINK_SLIP6: NethelpersLinkType
LINK_CSLIP6: NethelpersLinkType
LINK_RSRVD: NethelpersLinkType
LINK_ADAPT: NethelpersLinkType
LINK_ROSE: NethelpersLinkType
LINK_X25: NethelpersLinkType
LINK_HWX25: NethelpersLinkType
LINK_CAN: NethelpersLinkType
LINK_PPP: NethelpersLinkType
LINK_CISCO: NethelpersLinkType
LINK_HDLC: NethelpersLinkType
LINK_LAPB: NethelpersLinkType
LINK_DDCMP: NethelpersLinkType
LINK_RAWHDLC: NethelpersLinkType
LINK_TUNNEL: NethelpersLinkType
LINK_TUNNEL6: NethelpersLinkType
LINK_FRAD: NethelpersLinkType
LINK_SKIP: NethelpersLinkType
LINK_LOOPBCK: NethelpersLinkType
LINK_LOCALTLK: NethelpersLinkType
LINK_FDDI: NethelpersLinkType
LINK_BIF: NethelpersLinkType
LINK_SIT: NethelpersLinkType
LINK_IPDDP: NethelpersLinkType
LINK_IPGRE: NethelpersLinkType
LINK_PIMREG: NethelpersLinkType
LINK_HIPPI: NethelpersLinkType
LINK_ASH: NethelpersLinkType
LINK_ECONET: NethelpersLinkType
LINK_IRDA: NethelpersLinkType
LINK_FCPP: NethelpersLinkType
LINK_FCAL: NethelpersLinkType
LINK_FCPL: NethelpersLinkType
LINK_FCFABRIC: NethelpersLinkType
LINK_FCFABRIC1: NethelpersLinkType
LINK_FCFABRIC2: NethelpersLinkType
LINK_FCFABRIC3: NethelpersLinkType
LINK_FCFABRIC4: NethelpersLinkType
LINK_FCFABRIC5: NethelpersLinkType
LINK_FCFABRIC6: NethelpersLinkType
LINK_FCFABRIC7: NethelpersLinkType
LINK_FCFABRIC8: NethelpersLinkType
LINK_FCFABRIC9: NethelpersLinkType
LINK_FCFABRIC10: NethelpersLinkType
LINK_FCFABRIC11: NethelpersLinkType
LINK_FCFABRIC12: NethelpersLinkType
LINK_IEE802TR: NethelpersLinkType
LINK_IEE80211: NethelpersLinkType
LINK_IEE80211PRISM: NethelpersLinkType
LINK_IEE80211_RADIOTAP: NethelpersLinkType
LINK_IEE8021154: NethelpersLinkType
LINK_IEE8021154MONITOR: NethelpersLinkType
LINK_PHONET: NethelpersLinkType
LINK_PHONETPIPE: NethelpersLinkType
LINK_CAIF: NethelpersLinkType
LINK_IP6GRE: NethelpersLinkType
LINK_NETLINK: NethelpersLinkType
LINK6_LOWPAN: NethelpersLinkType
LINK_VOID: NethelpersLinkType
LINK_NONE: NethelpersLinkType
OPERATOR_EQUAL: NethelpersMatchOperator
OPERATOR_NOT_EQUAL: NethelpersMatchOperator
CHAIN_HOOK_PREROUTING: NethelpersNfTablesChainHook
CHAIN_HOOK_INPUT: NethelpersNfTablesChainHook
CHAIN_HOOK_FORWARD: NethelpersNfTablesChainHook
CHAIN_HOOK_OUTPUT: NethelpersNfTablesChainHook
CHAIN_HOOK_POSTROUTING: NethelpersNfTablesChainHook
NETHELPERS_NFTABLESCHAINPRIORITY_UNSPECIFIED: NethelpersNfTablesChainPriority
CHAIN_PRIORITY_FIRST: NethelpersNfTablesChainPriority
CHAIN_PRIORITY_CONNTRACK_DEFRAG: NethelpersNfTablesChainPriority
CHAIN_PRIORITY_RAW: NethelpersNfTablesChainPriority
CHAIN_PRIORITY_SE_LINUX_FIRST: NethelpersNfTablesChainPriority
CHAIN_PRIORITY_CONNTRACK: NethelpersNfTablesChainPriority
CHAIN_PRIORITY_MANGLE: NethelpersNfTablesChainPriority
CHAIN_PRIORITY_NAT_DEST: NethelpersNfTablesChainPriority
CHAIN_PRIORITY_FILTER: NethelpersNfTablesChainPriority
CHAIN_PRIORITY_SECURITY: NethelpersNfTablesChainPriority
CHAIN_PRIORITY_NAT_SOURCE: NethelpersNfTablesChainPriority
CHAIN_PRIORITY_SE_LINUX_LAST: NethelpersNfTablesChainPriority
CHAIN_PRIORITY_CONNTRACK_HELPER: NethelpersNfTablesChainPriority
CHAIN_PRIORITY_LAST: NethelpersNfTablesChainPriority
VERDICT_DROP: NethelpersNfTablesVerdict
VERDICT_ACCEPT: NethelpersNfTablesVerdict
OPER_STATE_UNKNOWN: NethelpersOperationalState
OPER_STATE_NOT_PRESENT: NethelpersOperationalState
OPER_STATE_DOWN: NethelpersOperationalState
OPER_STATE_LOWER_LAYER_DOWN: NethelpersOperationalState
OPER_STATE_TESTING: NethelpersOperationalState
OPER_STATE_DORMANT: NethelpersOperationalState
OPER_STATE_UP: NethelpersOperationalState
TWISTED_PAIR: NethelpersPort
AUI: NethelpersPort
MII: NethelpersPort
FIBRE: NethelpersPort
BNC: NethelpersPort
DIRECT_ATTACH: NethelpersPort
NONE: NethelpersPort
OTHER: NethelpersPort
PRIMARY_RESELECT_ALWAYS: NethelpersPrimaryReselect
PRIMARY_RESELECT_BETTER: NethelpersPrimaryReselect
PRIMARY_RESELECT_FAILURE: NethelpersPrimaryReselect
NETHELPERS_PROTOCOL_UNSPECIFIED: NethelpersProtocol
PROTOCOL_ICMP: NethelpersProtocol
PROTOCOL_TCP: NethelpersProtocol
PROTOCOL_UDP: NethelpersProtocol
PROTOCOL_ICM_PV6: NethelpersProtocol
NETHELPERS_ROUTEFLAG_UNSPECIFIED: NethelpersRouteFlag
ROUTE_NOTIFY: NethelpersRouteFlag
ROUTE_CLONED: NethelpersRouteFlag
ROUTE_EQUALIZE: NethelpersRouteFlag
ROUTE_PREFIX: NethelpersRouteFlag
ROUTE_LOOKUP_TABLE: NethelpersRouteFlag
ROUTE_FIB_MATCH: NethelpersRouteFlag
ROUTE_OFFLOAD: NethelpersRouteFlag
ROUTE_TRAP: NethelpersRouteFlag
PROTOCOL_UNSPEC: NethelpersRouteProtocol
PROTOCOL_REDIRECT: NethelpersRouteProtocol
PROTOCOL_KERNEL: NethelpersRouteProtocol
PROTOCOL_BOOT: NethelpersRouteProtocol
PROTOCOL_STATIC: NethelpersRouteProtocol
PROTOCOL_RA: NethelpersRouteProtocol
PROTOCOL_MRT: NethelpersRouteProtocol
PROTOCOL_ZEBRA: NethelpersRouteProtocol
PROTOCOL_BIRD: NethelpersRouteProtocol
PROTOCOL_DNROUTED: NethelpersRouteProtocol
PROTOCOL_XORP: NethelpersRouteProtocol
PROTOCOL_NTK: NethelpersRouteProtocol
PROTOCOL_DHCP: NethelpersRouteProtocol
PROTOCOL_MRTD: NethelpersRouteProtocol
PROTOCOL_KEEPALIVED: NethelpersRouteProtocol
PROTOCOL_BABEL: NethelpersRouteProtocol
PROTOCOL_OPENR: NethelpersRouteProtocol
PROTOCOL_BGP: NethelpersRouteProtocol
PROTOCOL_ISIS: NethelpersRouteProtocol
PROTOCOL_OSPF: NethelpersRouteProtocol
PROTOCOL_RIP: NethelpersRouteProtocol
PROTOCOL_EIGRP: NethelpersRouteProtocol
TYPE_UNSPEC: NethelpersRouteType
TYPE_UNICAST: NethelpersRouteType
TYPE_LOCAL: NethelpersRouteType
TYPE_BROADCAST: NethelpersRouteType
TYPE_ANYCAST: NethelpersRouteType
TYPE_MULTICAST: NethelpersRouteType
TYPE_BLACKHOLE: NethelpersRouteType
TYPE_UNREACHABLE: NethelpersRouteType
TYPE_PROHIBIT: NethelpersRouteType
TYPE_THROW: NethelpersRouteType
TYPE_NAT: NethelpersRouteType
TYPE_X_RESOLVE: NethelpersRouteType
ROUTING_RULE_ACTION_UNSPEC: NethelpersRoutingRuleAction
ROUTING_RULE_ACTION_UNICAST: NethelpersRoutingRuleAction
ROUTING_RULE_ACTION_BLACKHOLE: NethelpersRoutingRuleAction
ROUTING_RULE_ACTION_UNREACHABLE: NethelpersRoutingRuleAction
ROUTING_RULE_ACTION_PROHIBIT: NethelpersRoutingRuleAction
TABLE_UNSPEC: NethelpersRoutingTable
TABLE1: NethelpersRoutingTable
TABLE2: NethelpersRoutingTable
TABLE3: NethelpersRoutingTable
TABLE4: NethelpersRoutingTable
TABLE5: NethelpersRoutingTable
TABLE6: NethelpersRoutingTable
TABLE7: NethelpersRoutingTable
TABLE8: NethelpersRoutingTable
TABLE9: NethelpersRoutingTable
TABLE10: NethelpersRoutingTable
TABLE11: NethelpersRoutingTable
TABLE12: NethelpersRoutingTable
TABLE13: NethelpersRoutingTable
TABLE14: NethelpersRoutingTable
TABLE15: NethelpersRoutingTable
TABLE16: NethelpersRoutingTable
TABLE17: NethelpersRoutingTable
TABLE18: NethelpersRoutingTable
TABLE19: NethelpersRoutingTable
TABLE20: NethelpersRoutingTable
TABLE21: NethelpersRoutingTable
TABLE22: NethelpersRoutingTable
TABLE23: NethelpersRoutingTable
TABLE24: NethelpersRoutingTable
TABLE25: NethelpersRoutingTable
TABLE26: NethelpersRoutingTable
TABLE27: NethelpersRoutingTable
TABLE28: NethelpersRoutingTable
TABLE29: NethelpersRoutingTable
TABLE30: NethelpersRoutingTable
TABLE31: NethelpersRoutingTable
TABLE32: NethelpersRoutingTable
TABLE33: NethelpersRoutingTable
TABLE34: NethelpersRoutingTable
TABLE35: NethelpersRoutingTable
TABLE36: NethelpersRoutingTable
TABLE37: NethelpersRoutingTable
TABLE38: NethelpersRoutingTable
TABLE39: NethelpersRoutingTable
TABLE40: NethelpersRoutingTable
TABLE41: NethelpersRoutingTable
TABLE42: NethelpersRoutingTable
TABLE43: NethelpersRoutingTable
TABLE44: NethelpersRoutingTable
TABLE45: NethelpersRoutingTable
TABLE46: NethelpersRoutingTable
TABLE47: NethelpersRoutingTable
TABLE48: NethelpersRoutingTable
TABLE49: NethelpersRoutingTable
TABLE50: NethelpersRoutingTable
TABLE51: NethelpersRoutingTable
TABLE52: NethelpersRoutingTable
TABLE53: NethelpersRoutingTable
TABLE54: NethelpersRoutingTable
TABLE55: NethelpersRoutingTable
TABLE56: NethelpersRoutingTable
TABLE57: NethelpersRoutingTable
TABLE58: NethelpersRoutingTable
TABLE59: NethelpersRoutingTable
TABLE60: NethelpersRoutingTable
TABLE61: NethelpersRoutingTable
TABLE62: NethelpersRoutingTable
TABLE63: NethelpersRoutingTable
TABLE64: NethelpersRoutingTable
TABLE65: NethelpersRoutingTable
TABLE66: NethelpersRoutingTable
TABLE67: NethelpersRoutingTable
TABLE68: NethelpersRoutingTable
TABLE69: NethelpersRoutingTable
TABLE70: NethelpersRoutingTable
TABLE71: NethelpersRoutingTable
TABLE72: NethelpersRoutingTable
TABLE73: NethelpersRoutingTable
TABLE74: NethelpersRoutingTable
TABLE75: NethelpersRoutingTable
TABLE76: NethelpersRoutingTable
TABLE77: NethelpersRoutingTable
TABLE78: NethelpersRoutingTable
TABLE79: NethelpersRoutingTable
TABLE80: NethelpersRoutingTable
TABLE81: NethelpersRoutingTable
TABLE82: NethelpersRoutingTable
TABLE83: NethelpersRoutingTable
TABLE84: NethelpersRoutingTable
TABLE85: NethelpersRoutingTable
TABLE86: NethelpersRoutingTable
TABLE87: NethelpersRoutingTable
TABLE88: NethelpersRoutingTable
TABLE89: NethelpersRoutingTable
TABLE90: NethelpersRoutingTable
TABLE91: NethelpersRoutingTable
TABLE92: NethelpersRoutingTable
TABLE93: NethelpersRoutingTable
TABLE94: NethelpersRoutingTable
TABLE95: NethelpersRoutingTable
TABLE96: NethelpersRoutingTable
TABLE97: NethelpersRoutingTable
TABLE98: NethelpersRoutingTable
TABLE99: NethelpersRoutingTable
TABLE100: NethelpersRoutingTable
TABLE101: NethelpersRoutingTable
TABLE102: NethelpersRoutingTable
TABLE103: NethelpersRoutingTable
TABLE104: NethelpersRoutingTable
TABLE105: NethelpersRoutingTable
TABLE106: NethelpersRoutingTable
TABLE107: NethelpersRoutingTable
TABLE108: NethelpersRoutingTable
TABLE109: NethelpersRoutingTable
TABLE110: NethelpersRoutingTable
TABLE111: NethelpersRoutingTable
TABLE112: NethelpersRoutingTable
TABLE113: NethelpersRoutingTable
TABLE114: NethelpersRoutingTable
TABLE115: NethelpersRoutingTable
TABLE116: NethelpersRoutingTable
TABLE117: NethelpersRoutingTable
TABLE118: NethelpersRoutingTable
TABLE119: NethelpersRoutingTable
TABLE120: NethelpersRoutingTable
TABLE121: NethelpersRoutingTable
TABLE122: NethelpersRoutingTable
TABLE123: NethelpersRoutingTable
TABLE124: NethelpersRoutingTable
TABLE125: NethelpersRoutingTable
TABLE126: NethelpersRoutingTable
TABLE127: NethelpersRoutingTable
TABLE128: NethelpersRoutingTable
TABLE129: NethelpersRoutingTable
TABLE130: NethelpersRoutingTable
TABLE131: NethelpersRoutingTable
TABLE132: NethelpersRoutingTable
TABLE133: NethelpersRoutingTable
TABLE134: NethelpersRoutingTable
TABLE135: NethelpersRoutingTable
TABLE136: NethelpersRoutingTable
TABLE137: NethelpersRoutingTable
TABLE138: NethelpersRoutingTable
TABLE139: NethelpersRoutingTable
TABLE140: NethelpersRoutingTable
TABLE141: NethelpersRoutingTable
TABLE142: NethelpersRoutingTable
TABLE143: NethelpersRoutingTable
TABLE144: NethelpersRoutingTable
TABLE145: NethelpersRoutingTable
TABLE146: NethelpersRoutingTable
TABLE147: NethelpersRoutingTable
TABLE148: NethelpersRoutingTable
TABLE149: NethelpersRoutingTable
TABLE150: NethelpersRoutingTable
TABLE151: NethelpersRoutingTable
TABLE152: NethelpersRoutingTable
TABLE153: NethelpersRoutingTable
TABLE154: NethelpersRoutingTable
TABLE155: NethelpersRoutingTable
TABLE156: NethelpersRoutingTable
TABLE157: NethelpersRoutingTable
TABLE158: NethelpersRoutingTable
TABLE159: NethelpersRoutingTable
TABLE160: NethelpersRoutingTable
TABLE161: NethelpersRoutingTable
TABLE162: NethelpersRoutingTable
TABLE163: NethelpersRoutingTable
TABLE164: NethelpersRoutingTable
TABLE165: NethelpersRoutingTable
TABLE166: NethelpersRoutingTable
TABLE167: NethelpersRoutingTable
TABLE168: NethelpersRoutingTable
TABLE169: NethelpersRoutingTable
TABLE170: NethelpersRoutingTable
TABLE171: NethelpersRoutingTable
TABLE172: NethelpersRoutingTable
TABLE173: NethelpersRoutingTable
TABLE174: NethelpersRoutingTable
TABLE175: NethelpersRoutingTable
TABLE176: NethelpersRoutingTable
TABLE177: NethelpersRoutingTable
TABLE178: NethelpersRoutingTable
TABLE179: NethelpersRoutingTable
TABLE180: NethelpersRoutingTable
TABLE181: NethelpersRoutingTable
TABLE182: NethelpersRoutingTable
TABLE183: NethelpersRoutingTable
TABLE184: NethelpersRoutingTable
TABLE185: NethelpersRoutingTable
TABLE186: NethelpersRoutingTable
TABLE187: NethelpersRoutingTable
TABLE188: NethelpersRoutingTable
TABLE189: NethelpersRoutingTable
TABLE190: NethelpersRoutingTable
TABLE191: NethelpersRoutingTable
TABLE192: NethelpersRoutingTable
TABLE193: NethelpersRoutingTable
TABLE194: NethelpersRoutingTable
TABLE195: NethelpersRoutingTable
TABLE196: NethelpersRoutingTable
TABLE197: NethelpersRoutingTable
TABLE198: NethelpersRoutingTable
TABLE199: NethelpersRoutingTable
TABLE200: NethelpersRoutingTable
TABLE201: NethelpersRoutingTable
TABLE202: NethelpersRoutingTable
TABLE203: NethelpersRoutingTable
TABLE204: NethelpersRoutingTable
TABLE205: NethelpersRoutingTable
TABLE206: NethelpersRoutingTable
TABLE207: NethelpersRoutingTable
TABLE208: NethelpersRoutingTable
TABLE209: NethelpersRoutingTable
TABLE210: NethelpersRoutingTable
TABLE211: NethelpersRoutingTable
TABLE212: NethelpersRoutingTable
TABLE213: NethelpersRoutingTable
TABLE214: NethelpersRoutingTable
TABLE215: NethelpersRoutingTable
TABLE216: NethelpersRoutingTable
TABLE217: NethelpersRoutingTable
TABLE218: NethelpersRoutingTable
TABLE219: NethelpersRoutingTable
TABLE220: NethelpersRoutingTable
TABLE221: NethelpersRoutingTable
TABLE222: NethelpersRoutingTable
TABLE223: NethelpersRoutingTable
TABLE224: NethelpersRoutingTable
TABLE225: NethelpersRoutingTable
TABLE226: NethelpersRoutingTable
TABLE227: NethelpersRoutingTable
TABLE228: NethelpersRoutingTable
TABLE229: NethelpersRoutingTable
TABLE230: NethelpersRoutingTable
TABLE231: NethelpersRoutingTable
TABLE232: NethelpersRoutingTable
TABLE233: NethelpersRoutingTable
TABLE234: NethelpersRoutingTable
TABLE235: NethelpersRoutingTable
TABLE236: NethelpersRoutingTable
TABLE237: NethelpersRoutingTable
TABLE238: NethelpersRoutingTable
TABLE239: NethelpersRoutingTable
TABLE240: NethelpersRoutingTable
TABLE241: NethelpersRoutingTable
TABLE242: NethelpersRoutingTable
TABLE243: NethelpersRoutingTable
TABLE244: NethelpersRoutingTable
TABLE245: NethelpersRoutingTable
TABLE246: NethelpersRoutingTable
TABLE247: NethelpersRoutingTable
TABLE248: NethelpersRoutingTable
TABLE249: NethelpersRoutingTable
TABLE250: NethelpersRoutingTable
TABLE251: NethelpersRoutingTable
TABLE252: NethelpersRoutingTable
TABLE_DEFAULT: NethelpersRoutingTable
TABLE_MAIN: NethelpersRoutingTable
TABLE_LOCAL: NethelpersRoutingTable
SCOPE_GLOBAL: NethelpersScope
SCOPE_SITE: NethelpersScope
SCOPE_LINK: NethelpersScope
SCOPE_HOST: NethelpersScope
SCOPE_NOWHERE: NethelpersScope
NETHELPERS_VLANPROTOCOL_UNSPECIFIED: NethelpersVLANProtocol
VLAN_PROTOCOL8021_Q: NethelpersVLANProtocol
VLAN_PROTOCOL8021_AD: NethelpersVLANProtocol
NETHELPERS_WOLMODE_UNSPECIFIED: NethelpersWOLMode
WOL_MODE_PHY: NethelpersWOLMode
WOL_MODE_UNICAST: NethelpersWOLMode
WOL_MODE_MULTICAST: NethelpersWOLMode
WOL_MODE_BROADCAST: NethelpersWOLMode
WOL_MODE_MAGIC: NethelpersWOLMode
WOL_MODE_MAGIC_SECURE: NethelpersWOLMode
WOL_MODE_FILTER: NethelpersWOLMode
ENCRYPTION_KEY_STATIC: BlockEncryptionKeyType
ENCRYPTION_KEY_NODE_ID: BlockEncryptionKeyType
ENCRYPTION_KEY_KMS: BlockEncryptionKeyType
ENCRYPTION_KEY_TPM: BlockEncryptionKeyType
ENCRYPTION_PROVIDER_NONE: BlockEncryptionProviderType
ENCRYPTION_PROVIDER_LUKS2: BlockEncryptionProviderType
FILESYSTEM_TYPE_NONE: BlockFilesystemType
FILESYSTEM_TYPE_XFS: BlockFilesystemType
FILESYSTEM_TYPE_VFAT: BlockFilesystemType
FILESYSTEM_TYPE_EXT4: BlockFilesystemType
FILESYSTEM_TYPE_ISO9660: BlockFilesystemType
FILESYSTEM_TYPE_SWAP: BlockFilesystemType
FILESYSTEM_TYPE_VIRTIOFS: BlockFilesystemType
FILESYSTEM_TYPE_BTRFS: BlockFilesystemType
FS_PARAMETER_TYPE_STRING_VALUE: BlockFSParameterType
FS_PARAMETER_TYPE_BOOLEAN_VALUE: BlockFSParameterType
FS_PARAMETER_TYPE_BINARY_VALUE: BlockFSParameterType
VOLUME_PHASE_WAITING: BlockVolumePhase
VOLUME_PHASE_FAILED: BlockVolumePhase
VOLUME_PHASE_MISSING: BlockVolumePhase
VOLUME_PHASE_LOCATED: BlockVolumePhase
VOLUME_PHASE_PROVISIONED: BlockVolumePhase
VOLUME_PHASE_PREPARED: BlockVolumePhase
VOLUME_PHASE_READY: BlockVolumePhase
VOLUME_PHASE_CLOSED: BlockVolumePhase
VOLUME_TYPE_PARTITION: BlockVolumeType
VOLUME_TYPE_DISK: BlockVolumeType
VOLUME_TYPE_TMPFS: BlockVolumeType
VOLUME_TYPE_DIRECTORY: BlockVolumeType
VOLUME_TYPE_SYMLINK: BlockVolumeType
VOLUME_TYPE_OVERLAY: BlockVolumeType
VOLUME_TYPE_EXTERNAL: BlockVolumeType
LVM_LOGICAL_VOLUME_TYPE_LINEAR: StorageLVMLogicalVolumeType
LVM_LOGICAL_VOLUME_TYPE_RAID1: StorageLVMLogicalVolumeType
LVM_LOGICAL_VOLUME_TYPE_RAID0: StorageLVMLogicalVolumeType
LVM_LOGICAL_VOLUME_TYPE_RAID10: StorageLVMLogicalVolumeType
MD_ARRAY_PHASE_UNKNOWN: StorageMDArrayPhase
MD_ARRAY_PHASE_WAITING: StorageMDArrayPhase
MD_ARRAY_PHASE_REBUILDING: StorageMDArrayPhase
MD_ARRAY_PHASE_READY: StorageMDArrayPhase
MD_ARRAY_PHASE_ERROR: StorageMDArrayPhase
MD_LEVEL_RAID1: StorageMDLevel
MD_METADATA10: StorageMDMetadata
MD_METADATA12: StorageMDMetadata
CONFIG_DEFAULT: NetworkConfigLayer
CONFIG_CMDLINE: NetworkConfigLayer
CONFIG_PLATFORM: NetworkConfigLayer
CONFIG_OPERATOR: NetworkConfigLayer
CONFIG_MACHINE_CONFIGURATION: NetworkConfigLayer
OPERATOR_DHCP4: NetworkOperator
OPERATOR_DHCP6: NetworkOperator
OPERATOR_VIP: NetworkOperator
CONTAINER_IMAGE_PHASE_PENDING: ContainersContainerImagePhase
CONTAINER_IMAGE_PHASE_PULLING: ContainersContainerImagePhase
CONTAINER_IMAGE_PHASE_READY: ContainersContainerImagePhase
CONTAINER_IMAGE_PHASE_FAILED: ContainersContainerImagePhase
CONTAINER_INSTANCE_PHASE_CREATED: ContainersContainerInstancePhase
CONTAINER_INSTANCE_PHASE_RUNNING: ContainersContainerInstancePhase
CONTAINER_INSTANCE_PHASE_TERMINATED: ContainersContainerInstancePhase
CONTAINER_INSTANCE_PHASE_FAILED: ContainersContainerInstancePhase
IMAGE_CACHE_STATUS_UNKNOWN: CriImageCacheStatus
IMAGE_CACHE_STATUS_DISABLED: CriImageCacheStatus
IMAGE_CACHE_STATUS_PREPARING: CriImageCacheStatus
IMAGE_CACHE_STATUS_READY: CriImageCacheStatus
IMAGE_CACHE_COPY_STATUS_UNKNOWN: CriImageCacheCopyStatus
IMAGE_CACHE_COPY_STATUS_SKIPPED: CriImageCacheCopyStatus
IMAGE_CACHE_COPY_STATUS_PENDING: CriImageCacheCopyStatus
IMAGE_CACHE_COPY_STATUS_READY: CriImageCacheCopyStatus
PEER_STATE_UNKNOWN: KubespanPeerState
PEER_STATE_UP: KubespanPeerState
PEER_STATE_DOWN: KubespanPeerState
