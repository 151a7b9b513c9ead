/* The interface of libhlml: numbers, structures and functions as programs over it are compiled.
 *
 * Values and layouts follow the header that HabanaAI/gohlml publishes (release 1.15) and, where they changed since, the
 * ctypes declarations of the wheel habana-pyhlml of each release. HLML_API is the release as one number: 123 is 1.23.
 */
#ifndef GAUDI3_SIMULATOR_HLML_H
#define GAUDI3_SIMULATOR_HLML_H

#include <stdbool.h>
#include <stdint.h>

#ifndef HLML_API
#error "HLML_API is the release as one number, such as -DHLML_API=123 for 1.23"
#endif
#ifndef HLML_RELEASE
#error "HLML_RELEASE is the release as text, such as -DHLML_RELEASE='\"1.23.0-695\"'"
#endif

typedef enum {
	HLML_SUCCESS = 0,
	HLML_ERROR_UNINITIALIZED = 1,
	HLML_ERROR_INVALID_ARGUMENT = 2,
	HLML_ERROR_NOT_SUPPORTED = 3,
	HLML_ERROR_ALREADY_INITIALIZED = 5,
	HLML_ERROR_NOT_FOUND = 6,
	HLML_ERROR_INSUFFICIENT_SIZE = 7,
	HLML_ERROR_DRIVER_NOT_LOADED = 9,
	HLML_ERROR_TIMEOUT = 10,
	HLML_ERROR_AIP_IS_LOST = 15,
	HLML_ERROR_MEMORY = 20,
	HLML_ERROR_NO_DATA = 21,
	HLML_ERROR_UNKNOWN = 49,
} hlml_return_t;

/* Bits of an event. */
enum {
	HLML_EVENT_ECC_DERR = 1 << 0,
	HLML_EVENT_CRITICAL_ERR = 1 << 1,
	HLML_EVENT_CLOCK_RATE = 1 << 2,
	HLML_EVENT_DRAM_DERR = 1 << 3,
	HLML_EVENT_ECC_SERR = 1 << 4,
	HLML_EVENT_DRAM_SERR = 1 << 5,
};

/* Choices are C enumerations in the published header: as wide as this, and any number can arrive. */
typedef unsigned int hlml_choice_t;

typedef void *hlml_device_t;
typedef void *hlml_event_set_t;

#define HLML_LINK_LENGTH 10
#define HLML_FIELD_LENGTH 32
/* The tuple domain:bus:device.function; domains grew with 1.19. */
#if HLML_API >= 119
#define HLML_ADDRESS_LENGTH 19
#else
#define HLML_ADDRESS_LENGTH 15
#endif

typedef struct {
	char link_speed[HLML_LINK_LENGTH];
	char link_width[HLML_LINK_LENGTH];
	char link_max_speed[HLML_LINK_LENGTH];
	char link_max_width[HLML_LINK_LENGTH];
} hlml_pci_cap_t;

typedef struct {
	unsigned int bus;
	char bus_id[HLML_ADDRESS_LENGTH];
	unsigned int device;
	unsigned int domain;
	unsigned int pci_device_id;
	hlml_pci_cap_t caps;
	unsigned int pci_rev;
#if HLML_API >= 118
	unsigned int pci_subsys_id;
#endif
} hlml_pci_info_t;

typedef struct {
	unsigned int aip;
#if HLML_API >= 119
	unsigned int memory;
#endif
} hlml_utilization_t;

typedef struct {
	unsigned int aip_util;
} hlml_process_utilization_sample_t;

typedef struct {
	unsigned long long free;
	unsigned long long total;
	unsigned long long used;
} hlml_memory_t;

typedef struct {
	char pcb_ver[HLML_FIELD_LENGTH];
	char pcb_assembly_ver[HLML_FIELD_LENGTH];
} hlml_pcb_info_t;

typedef struct {
	hlml_device_t device;
	unsigned long long event_type;
} hlml_event_data_t;

typedef struct {
	unsigned char addr[6];
	int id;
} hlml_mac_info_t;

typedef struct {
	uint32_t port;
	char *str_buf;
	uint64_t *val_buf;
	uint32_t *num_of_counters_out;
} hlml_nic_stats_info_t;

typedef struct {
	unsigned long long reference_time;
	unsigned long long violation_time;
} hlml_violation_time_t;

typedef struct {
	uint8_t hbm_idx;
	uint8_t pc;
	uint8_t sid;
	uint8_t bank_idx;
	uint16_t row_addr;
} hlml_row_address_t;

/* Everything else in the library is hidden. */
#define HLML_PUBLIC __attribute__((visibility("default")))

HLML_PUBLIC hlml_return_t hlml_init(void);
HLML_PUBLIC hlml_return_t hlml_init_with_flags(unsigned int flags);
HLML_PUBLIC hlml_return_t hlml_shutdown(void);

HLML_PUBLIC hlml_return_t hlml_device_get_count(unsigned int *count);
HLML_PUBLIC hlml_return_t hlml_device_get_handle_by_pci_bus_id(const char *address, hlml_device_t *device);
HLML_PUBLIC hlml_return_t hlml_device_get_handle_by_index(unsigned int index, hlml_device_t *device);
HLML_PUBLIC hlml_return_t hlml_device_get_handle_by_UUID(const char *uuid, hlml_device_t *device);

HLML_PUBLIC hlml_return_t hlml_device_get_name(hlml_device_t device, char *name, unsigned int length);
HLML_PUBLIC hlml_return_t hlml_device_get_pci_info(hlml_device_t device, hlml_pci_info_t *pci);
HLML_PUBLIC hlml_return_t hlml_device_get_clock_info(hlml_device_t device, hlml_choice_t type, unsigned int *clock);
HLML_PUBLIC hlml_return_t hlml_device_get_max_clock_info(hlml_device_t device, hlml_choice_t type, unsigned int *clock);
HLML_PUBLIC hlml_return_t hlml_device_get_utilization_rates(hlml_device_t device, hlml_utilization_t *utilization);
HLML_PUBLIC hlml_return_t hlml_device_get_memory_info(hlml_device_t device, hlml_memory_t *memory);
HLML_PUBLIC hlml_return_t hlml_device_get_temperature(hlml_device_t device, hlml_choice_t sensor, unsigned int *celsius);
HLML_PUBLIC hlml_return_t hlml_device_get_temperature_threshold(hlml_device_t device, hlml_choice_t type,
								unsigned int *celsius);
HLML_PUBLIC hlml_return_t hlml_device_get_persistence_mode(hlml_device_t device, hlml_choice_t *mode);
HLML_PUBLIC hlml_return_t hlml_device_get_performance_state(hlml_device_t device, hlml_choice_t *state);
HLML_PUBLIC hlml_return_t hlml_device_get_power_usage(hlml_device_t device, unsigned int *milliwatts);
HLML_PUBLIC hlml_return_t hlml_device_get_power_management_default_limit(hlml_device_t device, unsigned int *milliwatts);
HLML_PUBLIC hlml_return_t hlml_device_get_ecc_mode(hlml_device_t device, hlml_choice_t *current, hlml_choice_t *pending);
HLML_PUBLIC hlml_return_t hlml_device_get_total_ecc_errors(hlml_device_t device, hlml_choice_t error,
							   hlml_choice_t counter, unsigned long long *count);
HLML_PUBLIC hlml_return_t hlml_device_get_memory_error_counter(hlml_device_t device, hlml_choice_t error,
							       hlml_choice_t counter, hlml_choice_t location,
							       unsigned long long *count);
HLML_PUBLIC hlml_return_t hlml_device_get_uuid(hlml_device_t device, char *uuid, unsigned int length);
HLML_PUBLIC hlml_return_t hlml_device_get_minor_number(hlml_device_t device, unsigned int *minor);
HLML_PUBLIC hlml_return_t hlml_device_get_mac_info(hlml_device_t device, hlml_mac_info_t *info, unsigned int size,
						   unsigned int start, unsigned int *count);
HLML_PUBLIC hlml_return_t hlml_device_err_inject(hlml_device_t device, hlml_choice_t error);
HLML_PUBLIC hlml_return_t hlml_device_get_hl_revision(hlml_device_t device, int *revision);
HLML_PUBLIC hlml_return_t hlml_device_get_pcb_info(hlml_device_t device, hlml_pcb_info_t *pcb);
HLML_PUBLIC hlml_return_t hlml_device_get_serial(hlml_device_t device, char *serial, unsigned int length);
HLML_PUBLIC hlml_return_t hlml_device_get_module_id(hlml_device_t device, unsigned int *module);
HLML_PUBLIC hlml_return_t hlml_device_get_board_id(hlml_device_t device, unsigned int *board);
HLML_PUBLIC hlml_return_t hlml_device_get_pcie_throughput(hlml_device_t device, hlml_choice_t counter,
							  unsigned int *value);
HLML_PUBLIC hlml_return_t hlml_device_get_pcie_replay_counter(hlml_device_t device, unsigned int *value);
HLML_PUBLIC hlml_return_t hlml_device_get_curr_pcie_link_generation(hlml_device_t device, unsigned int *generation);
HLML_PUBLIC hlml_return_t hlml_device_get_curr_pcie_link_width(hlml_device_t device, unsigned int *width);
HLML_PUBLIC hlml_return_t hlml_device_get_current_clocks_throttle_reasons(hlml_device_t device,
									  unsigned long long *reasons);
HLML_PUBLIC hlml_return_t hlml_device_get_total_energy_consumption(hlml_device_t device, unsigned long long *millijoules);
HLML_PUBLIC hlml_return_t hlml_device_get_violation_status(hlml_device_t device, hlml_choice_t policy,
							   hlml_violation_time_t *times);
HLML_PUBLIC hlml_return_t hlml_device_get_replaced_rows(hlml_device_t device, hlml_choice_t cause, unsigned int *count,
							hlml_row_address_t *addresses);
HLML_PUBLIC hlml_return_t hlml_device_get_replaced_rows_pending_status(hlml_device_t device, hlml_choice_t *pending);
HLML_PUBLIC hlml_return_t hlml_device_get_oper_status(hlml_device_t device, char *status, unsigned int length);

HLML_PUBLIC hlml_return_t hlml_get_mac_addr_info(hlml_device_t device, uint64_t *mask, uint64_t *external);
HLML_PUBLIC hlml_return_t hlml_nic_get_link(hlml_device_t device, uint32_t port, bool *up);
HLML_PUBLIC hlml_return_t hlml_nic_get_statistics(hlml_device_t device, hlml_nic_stats_info_t *stats);

HLML_PUBLIC hlml_return_t hlml_device_clear_cpu_affinity(hlml_device_t device);
HLML_PUBLIC hlml_return_t hlml_device_get_cpu_affinity(hlml_device_t device, unsigned int size, unsigned long *set);
HLML_PUBLIC hlml_return_t hlml_device_get_cpu_affinity_within_scope(hlml_device_t device, unsigned int size,
								    unsigned long *set, hlml_choice_t scope);
HLML_PUBLIC hlml_return_t hlml_device_get_memory_affinity(hlml_device_t device, unsigned int size, unsigned long *set,
							  hlml_choice_t scope);
HLML_PUBLIC hlml_return_t hlml_device_set_cpu_affinity(hlml_device_t device);

HLML_PUBLIC hlml_return_t hlml_get_hlml_version(char *version, unsigned int length);
HLML_PUBLIC hlml_return_t hlml_get_driver_version(char *version, unsigned int length);
HLML_PUBLIC hlml_return_t hlml_get_model_number(hlml_device_t device, char *model, unsigned int length);
HLML_PUBLIC hlml_return_t hlml_get_serial_number(hlml_device_t device, char *serial, unsigned int length);
HLML_PUBLIC hlml_return_t hlml_get_firmware_fit_version(hlml_device_t device, char *version, unsigned int length);
HLML_PUBLIC hlml_return_t hlml_get_firmware_spi_version(hlml_device_t device, char *version, unsigned int length);
HLML_PUBLIC hlml_return_t hlml_get_fw_boot_version(hlml_device_t device, char *version, unsigned int length);
HLML_PUBLIC hlml_return_t hlml_get_fw_os_version(hlml_device_t device, char *version, unsigned int length);
HLML_PUBLIC hlml_return_t hlml_get_cpld_version(hlml_device_t device, char *version, unsigned int length);

HLML_PUBLIC hlml_return_t hlml_event_set_create(hlml_event_set_t *set);
HLML_PUBLIC hlml_return_t hlml_event_set_free(hlml_event_set_t set);
HLML_PUBLIC hlml_return_t hlml_device_register_events(hlml_device_t device, unsigned long long types,
						      hlml_event_set_t set);
HLML_PUBLIC hlml_return_t hlml_event_set_wait(hlml_event_set_t set, hlml_event_data_t *data, unsigned int milliseconds);

/* What later releases added: first called by the habana-pyhlml of that release. */
#if HLML_API >= 118
HLML_PUBLIC hlml_return_t hlml_device_get_clock_limit_info(hlml_device_t device, hlml_choice_t type,
							   unsigned int *clock);
HLML_PUBLIC hlml_return_t hlml_device_get_power_management_mode(hlml_device_t device, hlml_choice_t *mode);
HLML_PUBLIC hlml_return_t hlml_device_get_power_management_limit(hlml_device_t device, unsigned int *milliwatts);
#endif
#if HLML_API >= 119
HLML_PUBLIC hlml_return_t hlml_device_get_process_utilization(hlml_device_t device,
							      hlml_process_utilization_sample_t *sample);
HLML_PUBLIC hlml_return_t hlml_device_set_power_management_limit(hlml_device_t device, unsigned int milliwatts);
#endif
#if HLML_API >= 120
HLML_PUBLIC hlml_return_t hlml_device_get_supported_performance_states(hlml_device_t device, hlml_choice_t *states,
								       unsigned int size);
HLML_PUBLIC hlml_return_t hlml_get_nic_driver_version(char *version, unsigned int length);
#endif
#if HLML_API >= 121
HLML_PUBLIC hlml_return_t hlml_device_get_power_management_limit_constraints(hlml_device_t device, unsigned int *low,
									     unsigned int *high);
#endif

#endif
