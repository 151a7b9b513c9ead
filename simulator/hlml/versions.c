/* Versions of the library, the drivers and the firmware, and numbers of the product. */
#include "device.h"

hlml_return_t hlml_get_hlml_version(char *version, unsigned int length)
{
	return text_of(version, length, "library-version");
}

hlml_return_t hlml_get_driver_version(char *version, unsigned int length)
{
	return text_of(version, length, "driver-version");
}

#if HLML_API >= 120
hlml_return_t hlml_get_nic_driver_version(char *version, unsigned int length)
{
	return text_of(version, length, "nic-driver-version");
}
#endif

hlml_return_t hlml_get_model_number(hlml_device_t device, char *model, unsigned int length)
{
	return device_text(device, model, length, "model");
}

hlml_return_t hlml_get_serial_number(hlml_device_t device, char *serial, unsigned int length)
{
	return device_text(device, serial, length, "serial");
}

hlml_return_t hlml_get_firmware_fit_version(hlml_device_t device, char *version, unsigned int length)
{
	return device_text(device, version, length, "firmware-fit");
}

hlml_return_t hlml_get_firmware_spi_version(hlml_device_t device, char *version, unsigned int length)
{
	return device_text(device, version, length, "firmware-spi");
}

hlml_return_t hlml_get_fw_boot_version(hlml_device_t device, char *version, unsigned int length)
{
	return device_text(device, version, length, "firmware-boot");
}

hlml_return_t hlml_get_fw_os_version(hlml_device_t device, char *version, unsigned int length)
{
	return device_text(device, version, length, "firmware-os");
}

hlml_return_t hlml_get_cpld_version(hlml_device_t device, char *version, unsigned int length)
{
	return device_text(device, version, length, "cpld");
}
