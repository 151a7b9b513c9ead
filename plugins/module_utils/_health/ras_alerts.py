# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The alerts that a management controller knows by name: 80 of the RAS table, and the fields of a Gaudi 3.

Names, severities and paths are those of HabanaAI/gaudi-bmc-exporter (release 1.24.1-482, Apache-2.0):
``zarf/config/prod/alert_description.json`` and ``g3redfish.yaml``. The wordings and the actions are this project's.
Nothing acts upon them: they are for a person. The 80 names belong to the RAS interface of Gaudi 2. A Gaudi 3 says the
same in fields of a resource, few of which have a published severity; ``ras`` is the name that says the same, where
there is one.
"""

from __future__ import annotations

from dataclasses import dataclass

from .actions import (
    CONFIGURE,
    CRITICAL,
    ERROR,
    INFO,
    ISOLATE,
    NONE,
    REBOOT,
    RELOAD,
    REPLACE,
    RESET,
    RETRY,
    WARNING,
    WATCH,
)  # fmt: skip

#: The published severities, on this project's scale.
SCALE = {"Notice": INFO, "Error": ERROR, "Critical": CRITICAL, "Fatal": CRITICAL}


@dataclass(frozen=True)
class RasAlert:
    """One name of the RAS table."""

    name: str
    published: str
    """The severity, in the table's word."""
    action: str
    wording: str

    @property
    def severity(self) -> str:
        """On this project's scale."""
        return SCALE[self.published]


@dataclass(frozen=True)
class AlertField:
    """One field of a Gaudi 3 card's alerts."""

    path: str
    """Below ``Oem.Intel.Alert``."""
    name: str
    published: str = ""
    """Empty where the map gives no severity."""
    ras: str = ""
    is_place: bool = False
    """Whether it says where something is, so that no value of it is an alert."""

    @property
    def known(self) -> RasAlert | None:
        """The name of the RAS table that says the same."""
        return RAS_ALERTS.get(self.ras)

    @property
    def severity(self) -> str:
        """Its own, else that of the name that says the same, else a warning."""
        published = self.published or (self.known.published if self.known else "")
        return SCALE.get(published, WARNING)

    @property
    def action(self) -> str:
        """That of the name that says the same. What the vendor groups as a reason for a return is for a person."""
        return self.known.action if self.known else REPLACE if self.path.startswith("RMA.") else WATCH

    @property
    def wording(self) -> str:
        """For people."""
        return self.known.wording if self.known else f"the field {self.path} is set"


# Name, published severity, action, wording.
_TABLE = (
    ("DOUBLE_ECC_BLOCK_ERR", "Error", RESET, "an error of two bits in a block of SRAM"),
    ("SINGLE_ECC_BLOCK_ERR", "Error", WATCH, "an error of one bit in a block of SRAM, corrected"),
    ("HBM_COMMAND_ADDRESS_ERR", "Error", RESET, "an error of HBM's command or address"),
    ("HBM_DATA_WRITE_ERR", "Error", RESET, "an error while HBM was written"),
    ("HBM_DATA_READ_ERR", "Error", RESET, "an error while HBM was read"),
    ("DOUBLE_ECC_ERR", "Error", RESET, "an error of two bits in HBM"),
    ("SINGLE_ECC_ERR", "Error", WATCH, "an error of one bit in HBM, corrected"),
    ("SRAM_UNREPAIRABLE_RINGS_ERR", "Error", REPLACE, "SRAM that cannot be repaired"),
    ("SRAM_REPAIRED_RINGS_ERR", "Notice", NONE, "SRAM that was repaired"),
    ("HBM_CATASTROPHIC_TEMP_ERR", "Fatal", ISOLATE, "HBM became so hot that the card shuts down"),
    ("PCIE_UNCORRECTABLE_FATAL_ERR", "Critical", REBOOT, "a fatal error of the PCIe link"),
    ("PCIE_RECEIVER_OVERFLOW_ERR", "Critical", REBOOT, "an overflow of the PCIe receiver"),
    ("PCIE_FLOW_CONTROL_PROTOCOL_ERR", "Critical", REBOOT, "an error of PCIe's flow control"),
    ("PCIE_SURPRISE_LINK_DOWN_ERR", "Critical", REBOOT, "the PCIe link went down without notice"),
    ("PCIE_MALFUNCTION_TLP_ERR", "Critical", REBOOT, "a PCIe packet without a valid form"),
    ("PCIE_DLLP_PROTOCOL_ERR", "Critical", REBOOT, "an error of PCIe's link protocol"),
    ("PCIE_ECRC_ERR", "Notice", WATCH, "a PCIe packet with a wrong checksum"),
    ("PCIE_COMPLETION_TIMEOUT_ERR", "Notice", WATCH, "a PCIe request that got no answer in time"),
    ("PCIE_CORRECTED_INTERNAL_ERR", "Notice", WATCH, "an internal PCIe error, corrected"),
    ("PCIE_REPLAY_BUFFER_ROLLOVER_ERR", "Notice", WATCH, "a PCIe packet was sent again too often"),
    ("PCIE_REPLAY_TIMER_TIMEOUT_ERR", "Notice", WATCH, "a PCIe packet was not acknowledged in time"),
    ("PCIE_BAD_DLLP_ERR", "Notice", WATCH, "a bad packet of PCIe's link layer, corrected"),
    ("PCIE_BAD_TLP_ERR", "Notice", WATCH, "a bad PCIe packet, corrected"),
    ("PCIE_RECEIVER_ERR", "Critical", WATCH, "an error of the PCIe receiver"),
    ("PCIE_LCRD_ERR", "Critical", WATCH, "an error of PCIe's LCRD"),
    ("PCIE_RX_NAK_DLLP_ERR", "Critical", WATCH, "the other side refused PCIe packets"),
    ("PCIE_TX_NAK_DLLP_ERR", "Critical", WATCH, "the card refused PCIe packets"),
    ("PCIE_RETRY_TLP_ERR", "Critical", WATCH, "PCIe packets were sent again"),
    ("NIC_BER_ERR", "Notice", WATCH, "a port with a high rate of bit errors"),
    ("NIC_MULTIPLE_NACK_ERR", "Notice", WATCH, "a port with many packets that were not acknowledged"),
    ("NIC_MULTIPLE_CRC_ERR", "Critical", RETRY, "a port with many wrong checksums"),
    ("NIC_MULTIPLE_LINK_RE_INITIALIZATIONS_ERR", "Critical", RETRY, "a port whose link came up again many times"),
    ("NIC_MULTIPLE_LINK_RE_TRANSMISSIONS_ERR", "Notice", WATCH, "a port that sent much again"),
    ("THERMAL_THRESHOLD_CROSSING_ERR", "Notice", WATCH, "a temperature crossed its threshold"),
    ("THERMAL_TEMP_RISE_TIME_VIOLATION_ERR", "Notice", WATCH, "a temperature rose too fast"),
    ("VOLTAGE_MONITOR_THRESHOLD_1_ERR", "Notice", WATCH, "a voltage crossed its threshold for warnings"),
    ("VOLTAGE_MONITOR_THRESHOLD_2_ERR", "Notice", ISOLATE, "a voltage crossed its threshold for errors"),
    ("SECURITY_SPI_REVOKED_PUB_KEY_ERR", "Notice", ISOLATE, "the flash is signed with a revoked key"),
    ("SECURITY_SPI_SVN_ERR", "Notice", ISOLATE, "the flash has an older security version than the card takes"),
    ("SECURITY_SPI_SIGNATURE_ERR", "Notice", ISOLATE, "the flash has a wrong signature"),
    ("SECURITY_AGENT_REVOKED_PUB_KEY_ERR", "Notice", ISOLATE, "the firmware is signed with a revoked key"),
    ("SECURITY_AGENT_SVN_ERR", "Notice", ISOLATE, "the firmware has another security version than the card takes"),
    ("SECURITY_AGENT_SIGNATURE_ERR", "Notice", ISOLATE, "the firmware has a wrong signature"),
    ("SECURITY_AGENT_UBOOT_ERR", "Notice", RELOAD, "the firmware's boot loader did not start"),
    ("SECURITY_AGENT_LINUX_ERR", "Notice", RELOAD, "the firmware's Linux did not start"),
    ("SECURITY_AGENT_ZEPHYR_ERR", "Notice", RELOAD, "the firmware's Zephyr did not start"),
    ("SECURITY_REVOKE_LAST_KEY_ERR", "Notice", ISOLATE, "the last key was to be revoked"),
    ("SECURITY_PERMISSION_ACCESS_ERR", "Notice", ISOLATE, "an access without permission"),
    ("WD_HEARTBEAT_ERR", "Error", RELOAD, "the card's firmware does not answer"),
    ("WD_TDR_ERR", "Error", RESET, "work on the card did not end in time"),
    ("WD_HW_ERR", "Error", RELOAD, "the firmware's watchdog ran out"),
    ("CHECKSUM_PPBOOT_PRIMARY_ERR", "Error", ISOLATE, "the first pre-preboot image is damaged"),
    ("CHECKSUM_PPBOOT_SECONDARY_ERR", "Error", ISOLATE, "the second pre-preboot image is damaged"),
    ("CHECKSUM_PREBOOT_PRIMARY_ERR", "Error", ISOLATE, "the first preboot image is damaged"),
    ("CHECKSUM_PREBOOT_SECONDARY_ERR", "Error", ISOLATE, "the second preboot image is damaged"),
    ("CHECKSUM_CPLD_ERR", "Error", ISOLATE, "the image of the CPLD is damaged"),
    ("CHECKSUM_HBM_RMA_PERITY_ERR", "Error", ISOLATE, "the table of HBM's parity errors is damaged"),
    ("CHECKSUM_HBM_RMA_ECC_ERR", "Error", ISOLATE, "the table of HBM's memory errors is damaged"),
    ("CHECKSUM_HBM_RMA_SRAM_ECC_ERR", "Error", ISOLATE, "the table of SRAM's memory errors is damaged"),
    ("CHECKSUM_HBM_RMA_ROW_REPAIR_ERR", "Error", ISOLATE, "the table of HBM's replaced rows is damaged"),
    ("CHECKSUM_HBM_RMA_CAUSE_ERR", "Error", ISOLATE, "the table of reasons for a return is damaged"),
    ("FIT_INVALID_IMAGE_FORMAT_ERR", "Error", CONFIGURE, "the firmware file has a wrong format"),
    ("FIT_TARGET_ADDREES_ERR", "Error", CONFIGURE, "the firmware file names a wrong address"),
    ("FIT_NOT_RUNABLE_ERR", "Error", CONFIGURE, "the firmware file cannot be run"),
    ("FATAL_SRAM_ECC_ERR", "Fatal", RESET, "a fatal memory error in SRAM"),
    ("FATAL_HBM_ECC_ERR", "Fatal", RESET, "a fatal memory error in HBM"),
    ("FATAL_HBM_PARITY_ERR", "Fatal", RESET, "a fatal parity error in HBM"),
    ("FATAL_HBM_INIT_ERR", "Fatal", REPLACE, "HBM did not start"),
    ("FATAL_ROW_REPLACEMENT_ERR", "Fatal", REPLACE, "a row of HBM could not be replaced"),
    ("HBM_MBIST_REPAIR_FAILURE_ERR", "Fatal", REPLACE, "the self-test of HBM found what it could not repair"),
    ("VOLTAGE_MONITOR_THRESHOLD", "Notice", WATCH, "a voltage crossed a threshold"),
    ("CHECKSUM_EEPROM_DEVICE_ACCESS_ERR", "Error", ISOLATE, "the EEPROM cannot be read"),
    ("CHECKSUM_EEPROM_CRC_ERR", "Error", ISOLATE, "the EEPROM is damaged"),
    ("CHECKSUM_EEPROM_UNKNOWN_ERR", "Error", ISOLATE, "the EEPROM fails for an unknown reason"),
    ("DYNAMIC_ROW_REPLACEMENT_ERR", "Error", RESET, "a row of HBM could not be replaced while the card ran"),
    ("PLL_LOCK_ERR", "Critical", REBOOT, "a clock generator does not lock"),
    ("DOUBLE_ECC_COUNTER_ERR", "Error", RESET, "errors of two bits were counted in SRAM"),
    ("SINGLE_ECC_COUNTER_ERR", "Error", WATCH, "errors of one bit were counted in SRAM, corrected"),
    ("DOUBLE_HBM_COUNTER_ERR", "Error", RESET, "errors of two bits were counted in HBM"),
    ("SINGLE_HBM_COUNTER_ERR", "Error", WATCH, "errors of one bit were counted in HBM, corrected"),
)
#: The alerts by their names.
RAS_ALERTS = {row[0]: RasAlert(*row) for row in _TABLE}

#: The alerts of a Gaudi 3, as the map of the published model lists them.
ALERT_FIELDS = (
    AlertField("Checksum.EEPROM", "CHECKSUM_EEPROM_DEVICE_ERR", "Error"),
    AlertField("Checksum.ppBootPrimary", "CHECKSUM_PPBOOT_PRIMARY_ERR", "Error", "CHECKSUM_PPBOOT_PRIMARY_ERR"),
    AlertField("Checksum.ppBootSecondary", "CHECKSUM_PPBOOT_SECONDARY_ERR", "Error", "CHECKSUM_PPBOOT_SECONDARY_ERR"),
    AlertField("Checksum.preBootPrimary", "CHECKSUM_PREBOOT_PRIMARY_ERR", "Error", "CHECKSUM_PREBOOT_PRIMARY_ERR"),
    AlertField(
        "Checksum.preBootSecondary", "CHECKSUM_PREBOOT_SECONDARY_ERR", "Error", "CHECKSUM_PREBOOT_SECONDARY_ERR"
    ),
    AlertField("D2D.D2DCoreIndex", "D2D_CORE_INDEX", is_place=True),
    AlertField("D2D.D2DErrorCount", "D2D_ERROR_COUNT"),
    AlertField("D2D.D2DErrorState", "D2D_ERROR_STATE"),
    AlertField("D2D.D2DMACIndex", "D2D_MAC_INDEX", is_place=True),
    AlertField("PLL.FirstPLLLockIndex", "PLL_LOCK_ERR", "Critical", "PLL_LOCK_ERR"),
    AlertField("RMA.D2DFatalReplay", "D2D_FATAL_REPLAY"),
    AlertField("RMA.D2DFatalTraining", "D2D_FATAL_TRAINING"),
    AlertField("RMA.SPIGWFatalReplay", "SPIGW_FATAL_REPLAY"),
    AlertField("Security.PermissionAccessError", "PERMISSION_ACCESS_ERROR", ras="SECURITY_PERMISSION_ACCESS_ERR"),
    AlertField("SecurityAgent.LastPublicKeyRevoked", "LAST_PUBLIC_KEY_REVOKED", ras="SECURITY_REVOKE_LAST_KEY_ERR"),
    AlertField("SecurityAgent.RevokedPublicKey", "REVOKED_PUBLIC_KEY", ras="SECURITY_AGENT_REVOKED_PUB_KEY_ERR"),
    AlertField("SecurityAgent.Signature", "SIGNATURE", ras="SECURITY_AGENT_SIGNATURE_ERR"),
    AlertField("SecurityAgent.Zephyr", "ZEPHYR", ras="SECURITY_AGENT_ZEPHYR_ERR"),
    AlertField("SecuritySPI.LastPublicKeyRevoked", "LAST_PUBLIC_KEY_REVOKED", ras="SECURITY_REVOKE_LAST_KEY_ERR"),
    AlertField("SecuritySPI.RevokedPublicKey", "REVOKED_PUBLIC_KEY", ras="SECURITY_SPI_REVOKED_PUB_KEY_ERR"),
    AlertField("SecuritySPI.Signature", "SIGNATURE", ras="SECURITY_SPI_SIGNATURE_ERR"),
    AlertField("SecuritySPI.SVN", "SVN", ras="SECURITY_SPI_SVN_ERR"),
    AlertField("SPIGW.SPIGWErrorCount", "SPIGW_ERROR_COUNT"),
    AlertField("VoltageMonitor.VoltageChannelIndex", "VOLTAGE_CHANNEL_INDEX", is_place=True),
    AlertField("VoltageMonitor.VoltageMonitorIndex", "VOLTAGE_MONITOR_INDEX", is_place=True),
    AlertField("VoltageMonitor.VoltageState", "VOLTAGE_STATE", ras="VOLTAGE_MONITOR_THRESHOLD"),
    AlertField("Watchdog.Heartbeat", "HEARTBEAT", ras="WD_HEARTBEAT_ERR"),
    AlertField("Watchdog.HW", "HW", ras="WD_HW_ERR"),
    AlertField("Watchdog.TDR", "TDR", ras="WD_TDR_ERR"),
)


def describe(name: str) -> RasAlert | None:
    """The alert of that name in the RAS table, or None where the table has none."""
    return RAS_ALERTS.get(name.upper())
